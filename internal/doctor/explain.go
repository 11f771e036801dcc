package doctor

import (
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// An Explanation is what can be said of a message or an ID without looking at the
// server. Nothing in it is secret.
type Explanation struct {
	Kind, Title string
	// Meaning is a sentence; Remedy is a hint, lower case, no full stop.
	Meaning, Remedy string
	Confidence      float64
	Retryable       bool
	// Because is what decided, "" for an ID.
	Because string
}

// Explain explains evidence that somebody has kept, or an ID that a check has
// shown, if that is its whole text.
func Explain(e fault.Evidence) Explanation {
	if title, meaning, remedy, ok := explainID(e.Text); ok {
		kind := e.Text[strings.LastIndexByte(e.Text, '.')+1:]
		return Explanation{Kind: kind, Title: title, Meaning: meaning, Remedy: remedy, Confidence: 1, Retryable: fault.Kind(kind).About().Retryable}
	}
	d := fault.Diagnose(e)
	x := Explanation{
		Kind: string(d.Kind), Title: d.Kind.About().Title, Meaning: secret.Scrub(d.Explanation), Remedy: secret.Scrub(d.SuggestedFix),
		Confidence: d.Confidence, Retryable: d.Retryable, Because: secret.Scrub(d.Because),
	}
	if d.Kind == fault.Unknown {
		// "Connection closed" is all that most clients say, whatever happened.
		x.Meaning = "The message alone does not say why: a missing variable, a missing program, a crash and more end like this."
		x.Remedy = "start the server and look at its exit code and last words: mcpmend check, or mcpmend test NAME"
	}
	return x
}

// explainID says what a finding of that ID means and what helps against it, for one
// that nobody has in front of them. The ID may be short of its stage. ok is false
// for an ID that is not known.
func explainID(id string) (title, meaning, remedy string, ok bool) {
	kind := id[strings.LastIndexByte(id, '.')+1:]
	if words, known := ownKinds[kind]; known {
		return strings.ReplaceAll(kind, "_", " "), words.meaning, words.remedy, true
	}
	if !slices.Contains(fault.Kinds(), fault.Kind(kind)) {
		return "", "", "", false
	}
	d := fault.Kind(kind).Diagnosis(fault.Evidence{})
	return d.Kind.About().Title, d.Explanation, d.SuggestedFix, true
}

type kindWords struct{ meaning, remedy string }

// ownKinds are the kinds that package fault does not know, since no message of a
// server shows them: they are seen in files, or by the clock.
var ownKinds = map[string]kindWords{
	string(clientconfig.Unreadable):     {"The client's file cannot be read, so the client has none of the servers in it.", "give yourself the right to read it, or put a regular file in its place"},
	string(clientconfig.Misplaced):      {"Servers stand in a file that the client does not read.", "move them to the file that the client reads; mcpmend heal offers that"},
	string(clientconfig.Unparsable):     {"The file is not valid JSON, TOML or YAML, so the client has none of the servers in it.", "correct it at the line that mcpmend check names"},
	string(clientconfig.WrongRoot):      {"The outermost value of the file is no object.", "put the servers into an object"},
	string(clientconfig.Empty):          {"The file is empty, which some clients take for an error.", "mcpmend heal writes {} into it"},
	string(clientconfig.Comment):        {"The client reads strict JSON, and a comment makes it lose the whole file.", "mcpmend heal removes the comment"},
	string(clientconfig.TrailingComma):  {"The client allows no comma before a closing bracket, and loses the whole file over it.", "mcpmend heal removes the comma"},
	string(clientconfig.ByteOrderMark):  {"The file begins with a byte order mark, as Windows PowerShell writes it; it cannot be seen, and the client loses the whole file over it.", "mcpmend heal removes the mark"},
	string(clientconfig.DuplicateKey):   {"A name stands twice in the same object; only the last one counts.", "remove one of them"},
	string(clientconfig.WrongKey):       {"The servers stand under a key of another client, such as \"servers\" instead of \"mcpServers\".", "mcpmend heal renames the key"},
	string(clientconfig.NoKey):          {"The servers stand at the top of the file and not under the key that the client reads.", "mcpmend heal puts them under it"},
	string(clientconfig.DoublyNested):   {"The key of the servers stands inside itself, so the client sees one server of that name.", "mcpmend heal takes one of them away"},
	string(clientconfig.WrongContainer): {"The servers are a list where the client wants an object, or the other way round.", "mcpmend heal turns one into the other where all of them have names"},

	string(clientconfig.WrongShape):       {"A value of the entry is of a type that the client cannot use.", "correct it at the line that mcpmend check names"},
	string(clientconfig.ArgsAsString):     {"The arguments are one text, and the client wants a list.", "mcpmend heal splits them"},
	string(clientconfig.CommandHoldsArgs): {"The command holds its arguments, too, so the client looks for a program with spaces in its name.", "mcpmend heal splits it"},
	string(clientconfig.NoCommand):        {"The entry has neither a command nor a URL, so there is nothing to start.", "add one of them, or remove the entry"},
	string(clientconfig.CommandAndURL):    {"The entry has both a command and a URL, and clients disagree which one counts.", "remove one of them"},
	string(clientconfig.NoURLs):           {"This client can only start commands.", "put the URL behind a command: mcpmend run URL"},
	string(clientconfig.MissingType):      {"The client skips a URL without a type.", "mcpmend heal adds it"},
	string(clientconfig.WrongType):        {"The client does not know the type that the entry has.", "mcpmend heal writes it in the client's spelling"},
	string(clientconfig.WrongName):        {"The client does not know a field of the entry; another client may.", "mcpmend heal renames it where the right name is certain"},
	string(clientconfig.MissingPart):      {"The entry lacks a part without which this client ignores it.", "add it; mcpmend heal does"},
	string(clientconfig.PartNotAllowed):   {"A part for commands stands beside a URL, or the other way round, and this client refuses the file for it.", "remove it, or make two entries"},
	string(clientconfig.NoName):           {"An entry of a list has no name.", "give it one"},

	kindShadowed:             {"Another entry of the same name wins, because its file is closer to the project.", "rename or remove one of them"},
	kindAsked:                {"The client asks for this value when it starts the server, so it cannot be started without you.", "nothing is wrong"},
	kindUnset:                {"The entry refers to a variable that is not set where the client is started.", "set the variable before the client starts"},
	kindForeignReference:     {"The entry refers to a variable in the spelling of another client, so the server gets the reference itself.", "mcpmend heal writes it in this client's spelling"},
	kindPlaceholder:          {"A value is still the one of the instructions, such as YOUR_API_KEY.", "put your own value in its place, or a reference to a variable that holds it"},
	kindPlainSecret:          {"A secret stands in a file that is shared or that others can read.", "refer to a variable instead, and replace the secret if others may have seen it"},
	kindUnverifiedTLS:        {"The entry switches the check of certificates off, so anybody on the way can read and change what the server sends.", "remove that setting, and name the certificate that is not trusted"},
	kindPreload:              {"A variable of the entry loads code into the server before it runs.", "remove it, unless you know what it loads"},
	kindDeprecated:           {"The registry of MCP servers says that this one should not be used any more.", "look at what its makers recommend instead"},
	kindSlow:                 {"The server works, but needs longer to start than its client waits.", "give it more time in the client's own setting for it, or install its package so that it is not fetched at each start"},
	kindScriptMissing:        {"The program is there, but not the script that it is told to run.", "correct the path"},
	kindDependsOnFolder:      {"A relative path in an entry of your own leads to another file in every folder that the client is opened in.", "write the absolute path, or name the folder with cwd"},
	kindCwdMissing:           {"The working folder of the entry does not exist.", "correct the path, or make the folder"},
	kindWindowsShim:          {"On Windows npx and its like are scripts, which this client cannot start by themselves.", "mcpmend heal puts cmd /c before it"},
	kindNpxWithoutYes:        {"npx may ask before it fetches a package, and nobody can answer.", "mcpmend heal adds -y"},
	kindDockerDetached:       {"docker run -d leaves the container alone at once, so nobody can talk to it.", "mcpmend heal removes -d"},
	kindNoTools:              {"The server works and lists no tools, so a model cannot do anything with it.", "look in its documentation whether it wants a setting or a sign-in first"},
	kindDockerNotInteractive: {"docker run without -i closes the container's standard input, and the server ends.", "mcpmend heal adds -i"},
}
