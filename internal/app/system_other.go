//go:build !linux

package app

// Only Linux lets a process adopt its orphaned grandchildren.
func adoptOrphans() {}
func endOrphans()   {}

// runningProcesses lists nothing where it would take another program to ask.
func runningProcesses() []process { return nil }
