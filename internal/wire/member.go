package wire

import "bytes"

// Member finds the value at a path of keys inside a JSON object that has been
// checked before. It reports false where a key is absent or a value on the way
// is no object. When a key stands twice the last one counts, as it does for the
// decoders of both SDKs.
func Member(object []byte, path ...string) ([]byte, bool) {
	s, ok := find(object, Span{0, len(object)}, path)
	if !ok {
		return nil, false
	}
	return object[s.Start:s.End:s.End], true
}

func find(b []byte, in Span, path []string) (Span, bool) {
	for _, key := range path {
		found := false
		_ = eachMember(b, in, func(k []byte, _, value Span) {
			if keyEqual(k, key) {
				in, found = value, true
			}
		})
		if !found {
			return Span{}, false
		}
	}
	return in, true
}

// keyEqual compares a key as written with a decoded one.
func keyEqual(written []byte, key string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written) == key
	}
	return unquote(string(written)) == key
}

// eachMember visits the members of the object at in. The whole span covers
// `"key": value`. The spans given to visit refer to b, also while in changes.
func eachMember(b []byte, in Span, visit func(key []byte, whole, value Span)) error {
	i := skipSpace(b, in.Start)
	if i >= in.End || b[i] != '{' {
		return ErrSyntax
	}
	i = skipSpace(b, i+1)
	for i < in.End && b[i] != '}' {
		start := i
		keyEnd, from, err := scanKey(b, i)
		if err != nil {
			return err
		}
		to, err := scanValue(b, from, 0)
		if err != nil {
			return err
		}
		visit(b[start+1:keyEnd-1], Span{start, to}, Span{from, to})
		if i = skipSpace(b, to); i < in.End && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

// EachMember visits the members of a checked JSON object in order, keys decoded.
// It does nothing when the value is no object.
func EachMember(object []byte, visit func(key string, value []byte)) {
	_ = eachMember(object, Span{0, len(object)}, func(k []byte, _, v Span) {
		key := string(k)
		if bytes.IndexByte(k, '\\') >= 0 {
			key = unquote(key)
		}
		visit(key, object[v.Start:v.End:v.End])
	})
}

// EachElement visits the elements of a checked JSON array in order. It does
// nothing when the value is no array.
func EachElement(array []byte, visit func(value []byte)) {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return
	}
	i = skipSpace(array, i+1)
	for i < len(array) && array[i] != ']' {
		end, err := scanValue(array, i, 0)
		if err != nil {
			return
		}
		visit(array[i:end:end])
		if i = skipSpace(array, end); i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
}

// Splice is src with the bytes of one span replaced.
func Splice(src []byte, s Span, value []byte) []byte {
	out := make([]byte, 0, len(src)-(s.End-s.Start)+len(value))
	out = append(out, src[:s.Start]...)
	out = append(out, value...)
	return append(out, src[s.End:]...)
}

// Set is the object with the value at path set: replaced where it stands, or
// added as the first member of the innermost object on the path. Objects that
// are missing on the way are made, also in place of other values. So the outcome
// is JSON whatever a peer sent where an object belongs.
func Set(object, value []byte, path ...string) []byte {
	if len(path) > 0 && !isObject(object) {
		object = []byte("{}")
	}
	in := Span{0, len(object)}
	for n, key := range path {
		s, ok := find(object, in, []string{key})
		if !ok || n+1 < len(path) && !isObject(object[s.Start:s.End]) {
			nested := value
			for k := len(path) - 1; k > n; k-- {
				nested = member(path[k], nested)
				nested = append(append([]byte{'{'}, nested...), '}')
			}
			if ok {
				return Splice(object, s, nested)
			}
			return insertFirst(object, in, member(key, nested))
		}
		in = s
	}
	return Splice(object, in, value)
}

func isObject(value []byte) bool {
	i := skipSpace(value, 0)
	return i < len(value) && value[i] == '{'
}

func member(key string, value []byte) []byte {
	return append(append(AppendString(nil, key), ':'), value...)
}

func insertFirst(b []byte, in Span, member []byte) []byte {
	at := skipSpace(b, in.Start) + 1
	if next := skipSpace(b, at); b[next] != '}' {
		member = append(member, ',')
	}
	return Splice(b, Span{at, at}, member)
}

// Remove is the object without the member at path, and without earlier copies of
// it, which would count once the last is gone. It is the same slice when there is
// no such member.
func Remove(object []byte, path ...string) []byte {
	parent, last := path[:len(path)-1], path[len(path)-1]
	in, ok := find(object, Span{0, len(object)}, parent)
	if !ok {
		return object
	}
	var gone Span
	copies := 0
	_ = eachMember(object, in, func(k []byte, whole, _ Span) {
		if keyEqual(k, last) {
			gone = whole
			copies++
		}
	})
	switch copies {
	case 0:
		return object
	case 1:
		return Splice(object, withComma(object, gone), nil)
	}
	return Splice(object, in, without(object, in, last))
}

// without puts the members of an object together again, but for those named key.
func without(b []byte, in Span, key string) []byte {
	out := []byte{'{'}
	_ = eachMember(b, in, func(k []byte, whole, _ Span) {
		if keyEqual(k, key) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, b[whole.Start:whole.End]...)
	})
	return append(out, '}')
}

// withComma widens a member by one comma: the one behind it, else the one before.
func withComma(b []byte, member Span) Span {
	if i := skipSpace(b, member.End); b[i] == ',' {
		member.End = skipSpace(b, i+1)
		return member
	}
	i := member.Start - 1
	for b[i] != ',' && b[i] != '{' {
		i--
	}
	if b[i] == ',' {
		member.Start = i
	}
	return member
}

// OneLine is raw without line breaks, so that it can travel over stdio. In
// checked JSON a raw line break can only be white space between tokens.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	out := bytes.Clone(raw)
	for i, c := range out {
		if c == '\n' || c == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// Prepend is the object with members, written as `"key":value,…`, put in front
// of its own.
func Prepend(object, members []byte) []byte {
	return insertFirst(object, Span{0, len(object)}, append([]byte(nil), members...))
}
