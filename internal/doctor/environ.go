package doctor

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// environ is a set of variables as one operating system sees them.
type environ struct {
	os   machine.OS
	list []string // NAME=value; the last of a name counts
}

func (e *environ) same(a, b string) bool {
	return a == b || e.os.IsWindows() && strings.EqualFold(a, b)
}

func (e *environ) lookup(name string) (string, bool) {
	for i := len(e.list) - 1; i >= 0; i-- {
		if n, value, _ := strings.Cut(e.list[i], "="); e.same(n, name) {
			return value, true
		}
	}
	return "", false
}

// set gives a variable a value, in place of any it had.
func (e *environ) set(name, value string) {
	e.drop(func(n string) bool { return e.same(n, name) })
	e.list = append(e.list, name+"="+value)
}

func (e *environ) drop(unwanted func(name string) bool) {
	e.list = slices.DeleteFunc(slices.Clone(e.list), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return unwanted(name)
	})
}

// ofClient is the environment in which a client itself runs. What it refers to in
// a file is looked up here.
func (d *Doctor) ofClient(c *clientconfig.Client) *environ {
	e := d.terminal()
	if d.fromDesktop(c) {
		e.list = d.desktop()
		e.drop(ourOwn)
	}
	return e
}

// terminal is the environment of a client that was started where we were.
func (d *Doctor) terminal() *environ {
	e := &environ{os: d.os(), list: d.Environ}
	e.drop(ourOwn)
	return e
}

func ourOwn(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "MCPMEND_") }

// fromDesktop reports whether a client has no more than the desktop gives it. One
// that asks the login shell has what a terminal has.
func (d *Doctor) fromDesktop(c *clientconfig.Client) bool {
	return c != nil && c.GUI && !d.asksShell(c)
}

func (d *Doctor) asksShell(c *clientconfig.Client) bool {
	return c != nil && c.AsksShell && !d.os().IsWindows()
}

func (d *Doctor) desktop() []string {
	if d.Desktop != nil {
		return d.Desktop.Environ()
	}
	return (&machine.Desktop{Own: d.Environ, Home: d.System.Home, OS: d.os()}).Guess()
}

// environment is what a client gives to the servers it starts, before the entry
// has its say.
func (d *Doctor) environment(c *clientconfig.Client) *environ {
	e := d.ofClient(c)
	if c != nil {
		e.list = slices.DeleteFunc(e.list, func(entry string) bool {
			name, value, _ := strings.Cut(entry, "=")
			return withholds(c, e, name, value)
		})
	}
	return e
}

// withholds reports whether a client keeps a variable of its own from its servers,
// by the client's idea of what they need or of what is secret, and not by ours.
func withholds(c *clientconfig.Client, e *environ, name, value string) bool {
	switch c.Inherits {
	case "no-secrets":
		return looksWithheld(name, value)
	case "few", "sdk":
		return !slices.ContainsFunc(handedOn[c.Inherits], func(n string) bool { return e.same(n, name) })
	}
	return false
}

// Gemini CLI keeps back what is called like a secret, some names, and what looks
// like one. (Its environmentSanitization.ts; measured with 0.61.)
var (
	withheldWords = pattern(`(?i)TOKEN|SECRET|PASSWORD|PASSWD|KEY|AUTH|CREDENTIAL|CREDS|PRIVATE|CERT`)
	withheldNames = []string{
		"CLIENT_ID", "DB_URI", "CONNECTION_STRING", "AWS_DEFAULT_REGION", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "SLACK_WEBHOOK_URL",
		"TWILIO_ACCOUNT_SID", "DATABASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_ACCOUNT", "FIREBASE_PROJECT_ID",
	}
	withheldValues = pattern(`(?i)-----BEGIN (RSA|OPENSSH|EC|PGP) PRIVATE KEY-----|-----BEGIN CERTIFICATE-----` +
		`|(https?|ftp|smtp)://[^:\s]+:[^@\s]+@|(ghp|gho|ghu|ghs|ghr|github_pat)_[a-z0-9_]{36,}|AIzaSy[a-z0-9_\\-]{33}` +
		`|AKIA[A-Z0-9]{16}|eyJ[a-z0-9_-]*\.[a-z0-9_-]*\.[a-z0-9_-]*|(s|r)k_(live|test)_[0-9a-z]{24}|xox[abpr]-[a-z0-9-]+`)
)

func looksWithheld(name, value string) bool {
	upper := strings.ToUpper(name)
	switch {
	case strings.HasPrefix(upper, "GEMINI_CLI_"):
		return false
	case withheldValues().MatchString(value):
		return true
	}
	return slices.Contains(withheldNames, upper) || !strings.HasPrefix(upper, "GIT_CONFIG_") && withheldWords().MatchString(name)
}

// handedOn are the variables that clients with a short list give to their servers:
// Codex has one of its own (measured with 0.166), and many take that of the official
// SDK as it is. On Windows the system adds some to each.
var handedOn = map[string][]string{
	"few": {
		"HOME", "LANG", "LC_ALL", "LOGNAME", "NODE_EXTRA_CA_CERTS", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "__CF_USER_TEXT_ENCODING",
		"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
	},
	"sdk": {
		"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "__CF_USER_TEXT_ENCODING",
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "LOGONSERVER", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR",
	},
}

// whyWithout says why a server of a client does not get a variable that is set where
// we run: the rest of a sentence that begins with the variable. "" if it is not set
// here, or the server gets it.
func (d *Doctor) whyWithout(c *clientconfig.Client, name string) string {
	here := d.terminal()
	value, _ := here.lookup(name)
	if c == nil || value == "" {
		return ""
	}
	_, has := d.ofClient(c).lookup(name)
	switch kept := withholds(c, here, name, value); {
	case kept && c.Inherits == "no-secrets":
		return fmt.Sprintf("is set in this terminal, but %s keeps what looks like a secret from its servers", c.Name)
	case kept:
		return fmt.Sprintf("is set in this terminal, but %s hands only HOME, PATH and a few others on to its servers", c.Name)
	case !has:
		return d.whyUnset(c, name)
	}
	return ""
}

// whyUnset is the same for a variable that the client itself does not have.
func (d *Doctor) whyUnset(c *clientconfig.Client, name string) string {
	if value, _ := d.terminal().lookup(name); value == "" || !d.fromDesktop(c) {
		return ""
	}
	return fmt.Sprintf("is set in this terminal, but %s is started by the desktop and does not get it", c.Name)
}

func (d *Doctor) os() machine.OS { return machine.OS(cmp.Or(d.System.OS, runtime.GOOS)) }

func (d *Doctor) home() string {
	if d.System.Home != "" {
		return d.System.Home
	}
	home, _ := os.UserHomeDir()
	return home
}
