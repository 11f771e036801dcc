package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/bench/internal/child"
)

// asDebugger is the first argument of the process that holds another one. It is a process
// of its own because the kernel tells a tracer's stops to whoever waits for the child in
// that process, and os/exec takes them for its end.
const asDebugger = "as-debugger"

// trace holds a process and all its threads as a debugger does: state t.
func trace(pid int, until <-chan struct{}) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := child.Start([]string{self, asDebugger, strconv.Itoa(pid)}, "", nil)
	if err != nil {
		return err
	}
	<-until
	state, err := c.Hangup()
	if err != nil {
		return err
	}
	if !state.Success() {
		if strings.Contains(c.Said(), "operation not permitted") {
			return fmt.Errorf("%w: %s", errCannot, c.Said())
		}
		return errors.New(c.Said())
	}
	return nil
}

// debug is the process that holds another one until the end of its stdin.
func debug(pid string) error {
	// Only the thread that attached may detach.
	runtime.LockOSThread()
	tasks, err := filepath.Glob("/proc/" + pid + "/task/*")
	if err != nil {
		return err
	}
	var traced []int
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			return err
		}
		if err := unix.PtraceAttach(tid); err != nil {
			if len(traced) == 0 {
				return fmt.Errorf("ptrace: %w", err)
			}
			continue // a thread that has just ended
		}
		traced = append(traced, tid)
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for _, tid := range traced {
		if err := unix.PtraceDetach(tid); err != nil {
			return fmt.Errorf("the process that was held is gone: %w", err)
		}
	}
	return nil
}
