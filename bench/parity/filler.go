package main

import "strings"

// nested is an object that nests 2n deep.
func nested(n int) string {
	return strings.Repeat(`{"d":[`, n) + `1.0` + strings.Repeat(`]}`, n)
}

// filler is text of about n bytes.
func filler(n int) string {
	const unit = `0123456789 caf\u00e9 café \"quoted\" `
	return strings.Repeat(unit, n/len(unit))
}
