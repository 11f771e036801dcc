//go:build !linux

package app

// slim does nothing here: other systems count shared pages differently.
func slim() {}
