package app

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestWhatStartingUpNeededIsGivenBack(t *testing.T) {
	before := residentFilePages(t)
	slim()
	if after := residentFilePages(t); after > before*3/4 {
		t.Errorf("%d kB of files in memory, %d kB before", after, before)
	}
}

// residentFilePages is how much of files is in our memory, in kB.
func residentFilePages(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Skip("this kernel does not say")
	return 0
}
