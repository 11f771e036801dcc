//go:build !linux

package doctor

// usedBy cannot be known here without starting another program.
func usedBy(string) (used, known bool) { return false, false }
