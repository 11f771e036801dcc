package secret

import (
	"slices"
	"strings"
)

// Not all that looks random is a key. Ids of containers, sums of files, times and the
// names that are made of them are what a reader of an error needs; they are told by their
// form, and by the words in front of them.

// innocent reports whether a run that looks random is none of anybody's secrets. before
// is what stands in front of it, path the text between blanks in which it stands.
func innocent(before, run, path string) bool {
	before = before[max(0, len(before)-128):]
	if i := strings.LastIndexByte(strings.TrimRight(run, "="), '='); i >= 0 { // NAME=value
		before, run = before+run[:i+1], run[i+1:]
	}
	if isDigest(before, run) || isPath(path) || strings.Contains(path, "node_modules/") || strings.Contains(path, "site-packages/") {
		return true
	}
	if strings.Contains(path, "://") {
		return false // there, a key may be a part of the path
	}
	said := lastWords(before)
	if !strings.Contains(strings.Join(said, ""), "publickey") && slices.ContainsFunc(said, Name) {
		return false
	}
	switch bare := strings.Trim(run, "-_="); {
	case shapes.uuid().MatchString(bare), shapes.ulid().MatchString(bare), shapes.traceParent().MatchString(bare), shapes.pod().MatchString(bare):
		return true
	case isHex(bare):
		return isSum(bare) || labelled(said) || strings.HasSuffix(before, ".") && len(bare) <= 20
	default:
		return madeOfWords(bare, labelled(said))
	}
}

// isSum reports whether digits are as many as those of a hash. Of 32 there are many
// keys; those need a word in front of them.
func isSum(hex string) bool {
	switch len(hex) {
	case 12, 16, 40, 56, 64, 96, 128:
		return true
	}
	return false
}

// isHex reports whether a text is hexadecimal digits of one case.
func isHex(s string) bool {
	return len(s) >= 7 && (strings.Trim(s, "0123456789abcdef") == "" || strings.Trim(s, "0123456789ABCDEF") == "")
}

// madeOfWords reports whether the parts of a name are words, numbers, times and sums.
func madeOfWords(s string, labelled bool) bool {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("-_+=/", r) })
	for _, part := range parts {
		switch {
		case isWord(part) && len(part) < 20, shapes.timePart().MatchString(part):
		case isHex(part) && (isSum(part) || labelled || len(part) == 32 && len(parts) > 1):
		default:
			return false
		}
	}
	return len(parts) > 1
}

// lastWords are the last three in front of a run on its line.
func lastWords(before string) []string {
	before = before[max(0, len(before)-48):]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	ws := Words(before)
	return ws[max(0, len(ws)-3):]
}

func labelled(said []string) bool {
	return slices.ContainsFunc(said, func(w string) bool { return labels[w] })
}

// labels are what sums and ids are called.
var labels = set(`container md5 sha sha1 sha256 sha512 crc hash checksum etag digest fingerprint trace traceparent span request correlation commit revision
	build image layer blob object task job message event operation transaction node device volume snapshot chunk serial pod invocation`)
