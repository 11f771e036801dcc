package app

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
)

func parseHeader(entries []string) (http.Header, error) {
	h := make(http.Header)
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, ":")
		name = textproto.TrimString(name)
		if !ok || name == "" {
			// The value may be a secret, so it is not shown.
			return nil, fmt.Errorf("a header is written as 'Name: value'")
		}
		h.Add(name, textproto.TrimString(value))
	}
	return h, nil
}
