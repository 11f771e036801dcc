//go:build !linux

package app

// Only Linux lets a process adopt its orphaned grandchildren.
func adoptOrphans() {}
func endOrphans()   {}
