package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/internal/machine"
)

// What we tell people to type is pasted without a second look, and names in it come
// from files of others: from a project that was just cloned. A name must stay one
// word, and must not become a flag. Every such line is made here.

// Typed is a command line of ours about some servers, for a person to paste. A
// server may be called "--yes". "" stands for a file as a whole and is left out.
func Typed(command string, servers []string, flags ...string) string {
	return typedOn("", "mcpmend "+command, servers, flags...)
}

// Quoted writes words as one line for the shell of this system.
func Quoted(words ...string) string { return quotedOn("", words...) }

// typedOn is Typed for any program, whose own words are not in doubt.
func typedOn(os machine.OS, program string, names []string, flags ...string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	words := append(slices.Clone(names), flags...)
	if slices.ContainsFunc(names, isFlag) {
		words = append(append(slices.Clone(flags), "--"), names...)
	}
	if len(words) == 0 {
		return program
	}
	return program + " " + quotedOn(os, words...)
}

func isFlag(word string) bool { return strings.HasPrefix(word, "-") }

func quotedOn(os machine.OS, words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteOn(os, word)
	}
	return strings.Join(quoted, " ")
}

func quoteOn(os machine.OS, word string) string {
	switch {
	case isPlainWord(word) && (!os.IsWindows() || !strings.ContainsAny(word, "@,=%")):
		return word
	case os.IsWindows():
		return quoteWindows(word)
	case !utf8.ValidString(word) || strings.ContainsFunc(word, isUnseen):
		return quoteOctal(word)
	}
	return quotePOSIX(word)
}

// isPlainWord: no shell sees more than letters in it. A word that begins with "=" is
// a program to zsh.
func isPlainWord(word string) bool {
	return word != "" && word[0] != '=' && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=,+%", r))
	})
}

// isUnseen tells runes that a person who pastes them cannot see, or that end the line.
func isUnseen(r rune) bool { return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) }

// quotePOSIX is for sh and what came after it, and for fish, to which a backslash
// between single quotes is one that escapes; csh finds "!" there, too. All three stand
// outside of the quotes.
func quotePOSIX(word string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`).Replace(word) + "'"
}

// quoteOctal spells out the bytes of what cannot be seen. A shell that does not know
// this form finds digits and letters in it, and a name that no server has.
func quoteOctal(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(word) > 0 {
		r, n := utf8.DecodeRuneInString(word)
		if r == utf8.RuneError || isUnseen(r) || strings.ContainsRune(`'\!`, r) {
			for _, c := range []byte(word[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		} else {
			b.WriteString(word[:n])
		}
		word = word[n:]
	}
	return b.String() + "'"
}

// quoteWindows is for cmd and PowerShell. No form keeps a word with one of these signs
// whole in both, so a question mark stands for it: the line then finds no server and
// lists those there are.
func quoteWindows(word string) string {
	word = strings.Map(func(r rune) rune {
		if isUnseen(r) || r == utf8.RuneError || strings.ContainsRune("\"%$`!“”„", r) {
			return '?'
		}
		return r
	}, word)
	// A backslash before the last quote would be taken for a part of it.
	if body := strings.TrimRight(word, `\`); body != word {
		word += word[len(body):]
	}
	return `"` + word + `"`
}
