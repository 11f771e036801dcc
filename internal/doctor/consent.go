package doctor

import "github.com/mcpmend/mcpmend/internal/clientconfig"

// Approvals remembers which commands of project files a person has agreed to run.
// An approval is bound to the hash of command, arguments, names of variables and
// working folder: another command is another approval.
type Approvals struct {
	// File is where they are kept.
	File string
}

// Approved reports whether a person has agreed to this command.
func (a *Approvals) Approved(hash string) bool { return false }

// Approve remembers that a person has agreed.
func (a *Approvals) Approve(hash string) error { return nil }

// fingerprint is what an approval is bound to.
func fingerprint(s *clientconfig.Server) string { return "" }
