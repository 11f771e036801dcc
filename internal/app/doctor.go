package app

import (
	"os"
	"path/filepath"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/upstream"
)

// DoctorOptions say whom to examine, and how.
type DoctorOptions struct {
	// Environ is the environment we were started with: where the clients' files are,
	// and what a client started from a terminal passes on.
	Environ []string
	// Project is the folder a client would be opened in, "" for none.
	Project string
	// Timeout, As and Static are as in doctor.Doctor.
	Timeout time.Duration
	As      *clientconfig.Client
	Static  bool
}

// NewDoctor puts a doctor together that starts servers through package upstream
// and keeps its records in our state folder.
func NewDoctor(o DoctorOptions) (*doctor.Doctor, error) {
	getenv := lookup(o.Environ)
	state, err := stateFolder(getenv)
	if err != nil {
		return nil, err
	}
	self, _ := Self() // without it, nothing is put behind us
	home := homeFolder(getenv)
	return &doctor.Doctor{
		System:    clientconfig.System{Home: home, Getenv: getenv, Project: o.Project},
		Environ:   o.Environ,
		Desktop:   &machine.Desktop{Own: o.Environ, Home: home},
		Programs:  &machine.Programs{Home: home, Getenv: getenv},
		Registry:  ownRegistry(getenv),
		Self:      self,
		Withheld:  upstream.IsModelKey,
		Probe:     Probe,
		Store:     &clientconfig.Store{Dir: filepath.Join(state, "changes")},
		Approvals: &doctor.Approvals{File: filepath.Join(state, "approved")},
		Timeout:   o.Timeout,
		As:        o.As,
		Static:    o.Static,
	}, nil
}

// ownRegistry is what we know of published servers; nil if there is no place to keep it.
func ownRegistry(getenv func(string) string) *registry.Registry {
	state, err := stateFolder(getenv)
	if err != nil {
		return nil
	}
	return &registry.Registry{BaseURL: getenv("MCPMEND_REGISTRY"), Dir: filepath.Join(state, "registry")}
}

// Self is our own program, as a path that may be written into a configuration. It
// is an error if the path will not be there tomorrow.
func Self() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return doctor.StableProgram(executable)
}

// Adopt makes us the parent of whatever the servers that we start leave behind, and
// returns what ends it, to be called when none of them is needed any more. It is only
// for a program that has no other children; see upstream.Reaper.
func Adopt() (end func()) { return upstream.NewReaper(false).EndAll }
