//go:build !windows

package machine

func profileEnviron() []string { return nil }
