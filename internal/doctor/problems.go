package doctor

import (
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// Kinds of our own, beside those of fault and clientconfig.
const (
	kindShadowed         = "shadowed"
	kindNoTools          = "none"
	kindAsked            = "asked"
	kindUnset            = "unset"
	kindForeignReference = "foreign_reference"
	kindPlaceholder      = "placeholder"
	kindPlainSecret      = "plain_secret"
	kindDeprecated       = "deprecated"
	kindSlow             = "slow"
)

// problemStages says on which rung a problem of a file stands, and whether the
// client goes on in spite of it.
var problemStages = map[clientconfig.Kind]struct {
	stage    Stage
	severity Severity
}{
	clientconfig.Unreadable:     {AtFile, Broken},
	clientconfig.Misplaced:      {AtFile, Broken},
	clientconfig.Unparsable:     {AtParse, Broken},
	clientconfig.WrongRoot:      {AtParse, Broken},
	clientconfig.Empty:          {AtParse, Broken},
	clientconfig.Comment:        {AtParse, Broken},
	clientconfig.TrailingComma:  {AtParse, Broken},
	clientconfig.ByteOrderMark:  {AtParse, Broken},
	clientconfig.DuplicateKey:   {AtParse, Warning},
	clientconfig.WrongKey:       {AtShape, Broken},
	clientconfig.NoKey:          {AtShape, Broken},
	clientconfig.DoublyNested:   {AtShape, Broken},
	clientconfig.WrongContainer: {AtShape, Broken},

	clientconfig.WrongShape:       {AtShape, Broken},
	clientconfig.ArgsAsString:     {AtShape, Broken},
	clientconfig.CommandHoldsArgs: {AtShape, Broken},
	clientconfig.NoCommand:        {AtShape, Broken},
	clientconfig.CommandAndURL:    {AtShape, Broken},
	clientconfig.NoURLs:           {AtShape, Broken},
	clientconfig.MissingType:      {AtShape, Broken},
	clientconfig.WrongType:        {AtShape, Broken},
	clientconfig.WrongName:        {AtShape, Broken},
	clientconfig.NoName:           {AtShape, Broken},
	clientconfig.MissingPart:      {AtShape, Broken},
	clientconfig.PartNotAllowed:   {AtShape, Broken},
}

func fileFinding(f *clientconfig.File, p clientconfig.Problem) Finding {
	row := problemStages[p.Kind]
	found := finding(row.stage, p.Kind, row.severity, place(p.At))
	found.Explanation, found.problem = problemWords(f.Client, p), &p
	if reason := entryReason(f.Client, p); reason != "" && p.Server != "" {
		switch {
		case p.Kind == clientconfig.WrongType, p.Kind == clientconfig.WrongName, p.Kind == clientconfig.NoName: // said already
		case p.Kind != clientconfig.MissingType || f.Client.Entry.CommandNeedsType:
			found.Explanation = fmt.Sprintf("%s ignores this entry: %s.", f.Client.Name, reason)
		}
		if found.refused = f.RefusedFor(p); found.refused {
			found.Explanation = fmt.Sprintf("%s refuses the whole file because of the entry %q: %s.", f.Client.Name, p.Server, reason)
		}
	} else if found.refused = f.RefusedFor(p); found.refused && p.Kind == clientconfig.WrongKey {
		found.Explanation = fmt.Sprintf("%s refuses the whole file: it does not know the key %q; servers belong under %q.", f.Client.Name, p.Have, p.Want)
	}
	if p.Detail != "" {
		found.Evidence = []string{p.Detail}
	}
	return found
}

func entryFinding(f *clientconfig.File, s *clientconfig.Server, p clientconfig.Problem) Finding {
	found := fileFinding(f, p)
	// A name nobody knows beside a command that works is a remark, not a reason.
	if p.Kind == clientconfig.WrongName && (s.Command.Text != "" || s.URL.Text != "") {
		found.Severity = Warning
	}
	return found
}

func misplacedFinding(f *clientconfig.File, s *clientconfig.Server) Finding {
	p := clientconfig.Problem{Kind: clientconfig.Misplaced, At: s.At, Path: s.Path, Server: s.Name.Text}
	for _, fp := range f.Problems {
		if fp.Kind == clientconfig.Misplaced {
			p.Want, p.Detail = fp.Want, fp.Detail
		}
	}
	return fileFinding(f, p)
}

// entryReason says why a client cannot use an entry, "" where it tries.
func entryReason(c *clientconfig.Client, p clientconfig.Problem) string {
	switch p.Kind {
	case clientconfig.ArgsAsString:
		return fmt.Sprintf("%q must be an array, not a string", p.Path[len(p.Path)-1])
	case clientconfig.WrongShape:
		return p.Detail
	case clientconfig.NoCommand:
		return "it has neither a command nor a URL"
	case clientconfig.CommandAndURL:
		return "it has both a command and a URL"
	case clientconfig.MissingType:
		return fmt.Sprintf("it has no %q, here %q", c.Entry.Type, p.Want)
	case clientconfig.MissingPart:
		return fmt.Sprintf("it has no %q", p.Want)
	case clientconfig.WrongType:
		return fmt.Sprintf("%s does not know the type %q and calls it %q", c.Name, p.Have, p.Want)
	case clientconfig.WrongName:
		return fmt.Sprintf("%s does not know %q and calls it %q", c.Name, p.Have, p.Want)
	case clientconfig.NoName:
		return "it has no name"
	case clientconfig.PartNotAllowed:
		return fmt.Sprintf("%q does not belong there: a command and a URL have parts of their own", p.Have)
	}
	return ""
}

// problemWords says what a problem of a file means, in one sentence.
func problemWords(c *clientconfig.Client, p clientconfig.Problem) string {
	switch p.Kind {
	case clientconfig.Unreadable:
		return c.Name + " cannot read this file, so it has none of the servers in it."
	case clientconfig.Misplaced:
		where := ""
		if p.Want != "" {
			where = "; it reads " + p.Want
		}
		return c.Name + " does not read servers from this file" + where + "."
	case clientconfig.Unparsable:
		return "The file is not valid here, so " + c.Name + " has none of its servers."
	case clientconfig.WrongRoot, clientconfig.Empty:
		return c.Name + " expects an object here and has none of the servers of this file."
	case clientconfig.Comment:
		return c.Name + " reads strict JSON: this comment makes it lose the whole file."
	case clientconfig.TrailingComma:
		return c.Name + " allows no trailing comma: this one makes it lose the whole file."
	case clientconfig.ByteOrderMark:
		return "The file begins with a byte order mark, which cannot be seen and makes " + c.Name + " lose all of it."
	case clientconfig.DuplicateKey:
		return "The same name stands here twice and only the last one counts."
	case clientconfig.WrongKey:
		return fmt.Sprintf("%s reads servers under %q, not under %q.", c.Name, p.Want, p.Have)
	case clientconfig.NoKey:
		return fmt.Sprintf("The servers stand at the top of the file; %s reads them under %q.", c.Name, p.Want)
	case clientconfig.DoublyNested:
		return fmt.Sprintf("%q stands inside itself, so %s does not see the servers in it.", p.Have, c.Name)
	case clientconfig.WrongContainer:
		return c.Name + " cannot read the servers: " + p.Detail + "."
	case clientconfig.CommandHoldsArgs:
		return "The command holds its arguments, too; a program of that name does not exist."
	case clientconfig.NoURLs:
		return c.Name + " only starts commands and cannot use a URL."
	case clientconfig.MissingType:
		return fmt.Sprintf("%s skips a URL without a type.", c.Name)
	case clientconfig.WrongType:
		return fmt.Sprintf("%s does not know the type %q.", c.Name, p.Have)
	case clientconfig.WrongName:
		if p.Want == "" {
			return fmt.Sprintf("%s does not know %q.", c.Name, p.Have)
		}
		return fmt.Sprintf("%s does not know %q; it is called %q here.", c.Name, p.Have, p.Want)
	case clientconfig.NoName:
		return "The entry has no name."
	}
	return strings.TrimSpace(c.Name + " cannot use this value: " + p.Detail)
}
