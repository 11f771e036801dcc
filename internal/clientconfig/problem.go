package clientconfig

import "fmt"

// A Problem is something wrong with a file or an entry that can be seen without
// starting anything.
type Problem struct {
	Kind Kind
	At   Position
	// Path leads to the value, as far as there is one.
	Path Path
	// Server is the name of the entry, "" for a problem of the file.
	Server string
	// Have is the name that is written and Want the one this client knows, where
	// the problem is a name. They are never values that could be secret.
	Have, Want string
	// Detail says more, in words for people.
	Detail string
}

func (p Problem) String() string {
	s := fmt.Sprintf("%s: %s", p.At, p.Kind)
	if p.Server != "" {
		s += fmt.Sprintf(" in %q", p.Server)
	}
	if p.Have != "" || p.Want != "" {
		s += fmt.Sprintf(": have %q, want %q", p.Have, p.Want)
	}
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	return s
}

// Kind names a problem; it is stable and may be shown and stored.
type Kind string

// Problems of a file. With the first three there are no servers, and the file
// will not be edited.
const (
	// Unreadable: no permission, not a file, too large.
	Unreadable Kind = "unreadable"
	// Unparsable: not the format it should be.
	Unparsable Kind = "unparsable"
	// WrongRoot: the top of the document, or something on the way to the servers,
	// is not an object.
	WrongRoot Kind = "wrong_root"
	// Empty: nothing in it, where the format wants at least braces.
	Empty Kind = "empty"
	// Comment and TrailingComma: the client is strict about it and cannot read any of
	// the file.
	Comment       Kind = "comment"
	TrailingComma Kind = "trailing_comma"
	// ByteOrderMark: the file begins with one, and the client cannot read any of it.
	ByteOrderMark Kind = "byte_order_mark"
	// DuplicateKey: only the last one counts, or the file is refused.
	DuplicateKey Kind = "duplicate_key"
	// WrongKey: the servers stand under a key that other clients use, or that is
	// spelt differently.
	WrongKey Kind = "wrong_key"
	// NoKey: entries stand at the top, without a key around them.
	NoKey Kind = "no_key"
	// DoublyNested: the key stands inside itself.
	DoublyNested Kind = "doubly_nested"
	// WrongContainer: a list where there should be an object, or the other way.
	WrongContainer Kind = "wrong_container"
	// Misplaced: servers in a file that the client does not read.
	Misplaced Kind = "misplaced"
)

// Problems of an entry.
const (
	// WrongShape: a value is of the wrong kind.
	WrongShape Kind = "wrong_shape"
	// ArgsAsString: the arguments are one text and not a list.
	ArgsAsString Kind = "args_as_string"
	// CommandHoldsArgs: the command is a whole line.
	CommandHoldsArgs Kind = "command_holds_args"
	// NoCommand: neither a command nor a URL.
	NoCommand Kind = "no_command"
	// CommandAndURL: both.
	CommandAndURL Kind = "command_and_url"
	// NoURLs: a URL, in a client that only starts commands.
	NoURLs Kind = "no_urls"
	// MissingType: this client skips the entry without a type.
	MissingType Kind = "missing_type"
	// WrongType: a type this client does not know.
	WrongType Kind = "wrong_type"
	// WrongName: a name that is misspelt or belongs to another client.
	WrongName Kind = "wrong_name"
	// MissingPart: a part without which this client ignores the entry.
	MissingPart Kind = "missing_part"
	// PartNotAllowed: a part for commands beside a URL, or the other way round, in a
	// client that takes that for an error.
	PartNotAllowed Kind = "part_not_allowed"
	// NoName: an entry of a list without a name.
	NoName Kind = "no_name"
)

// blocks reports whether the client, and therefore we, cannot get past it.
func (k Kind) blocks() bool { return k == Unreadable || k == Unparsable || k == WrongRoot }
