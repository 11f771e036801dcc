package app

import (
	"path/filepath"
	"runtime"
	"testing"
)

// A state folder that depends on where we stand could come with a project, with
// approvals in it.
func TestTheStateFolderIsTheSameEverywhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other variables")
	}
	for _, test := range []struct {
		environ []string
		want    string
	}{
		{[]string{"HOME=/home/u", "MCPMEND_STATE=/state"}, "/state"},
		{[]string{"HOME=/home/u", "MCPMEND_STATE=state"}, ""},
		{[]string{"HOME=/home/u", "XDG_STATE_HOME=/xdg"}, "/xdg/mcpmend"},
		{[]string{"HOME=/home/u", "XDG_STATE_HOME=xdg"}, "/home/u/.local/state/mcpmend"},
	} {
		got, err := stateFolder(lookup(test.environ))
		if filepath.ToSlash(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v: %q, %v; want %q", test.environ, got, err, test.want)
		}
	}
}
