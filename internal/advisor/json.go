package advisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object with its numbers as they were written. Below it are
// objects, []any, string, json.Number, bool and nil.
type object = map[string]any

const maxDepth = 32

// decodeObject reads one JSON object, and nothing that two readers could read
// differently: no key twice, no text that cannot be written again as it was.
func decodeObject(data []byte) (object, error) {
	v, err := decode(data, maxArguments)
	if err != nil {
		return nil, err
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return o, nil
}

func decode(data []byte, limit int) (any, error) {
	switch {
	case len(data) > limit:
		return nil, fmt.Errorf("more than %d bytes", limit)
	case !utf8.Valid(data) || !json.Valid(data):
		return nil, errors.New("not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := next(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func next(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := d.Token()
	if err != nil {
		return nil, errors.New("not JSON")
	}
	switch token {
	case json.Delim('{'):
		o := make(object)
		for d.More() {
			key, err := next(d, depth+1)
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if _, twice := o[name]; twice {
				return nil, errors.New("a key stands there twice")
			}
			if o[name], err = next(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := next(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.Token()
		return list, err
	}
	// Half a surrogate pair is read as U+FFFD and would be sent on as that.
	if s, ok := token.(string); ok && strings.ContainsRune(s, utf8.RuneError) {
		return nil, errors.New("a text with characters that do not exist")
	}
	return token, nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only values that decode returns come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
var pointerPlain = strings.NewReplacer("~1", "/", "~0", "~")

// under appends a key to a JSON pointer.
func under(pointer, key string) string { return pointer + "/" + pointerEscapes.Replace(key) }

func item(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// printable makes other people's text fit to be shown in one line: no control
// characters, no invisible or reordering ones, and not too long.
func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !strconv.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
