package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// asDaemon is the first argument of the process between us and a daemon.
const asDaemon = "-as-daemon"

// detach starts a program that is meant to outlive this server, as one starts a browser
// or tmux: a child starts it in a session of its own and ends.
func detach() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(self, asDaemon).Output()
	return strings.TrimSpace(string(out)), err
}

// daemon is the child in between. It tells the process id of what it has left running.
func daemon() {
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strconv.Itoa(cmd.Process.Pid))
}

// prompt asks the person at the terminal, as ssh and sudo do: not on stdin.
func prompt() (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer tty.Close()
	if _, err := tty.WriteString("PIN? "); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(tty).ReadString('\n')
	return "pin " + strings.TrimSpace(line), err
}

// dieWithParent has the kernel end cmd with us: a benchmark that kills its servers must
// not leave theirs behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
