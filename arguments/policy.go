package arguments

// Risk is what running a tool may do. The zero value is the worst, because that
// is what MCP says of a tool without annotations.
type Risk uint8

const (
	Destructive Risk = iota // may destroy or overwrite
	Write                   // adds or changes
	ReadOnly                // changes nothing
)

func (r Risk) String() string {
	switch r {
	case Write:
		return "write"
	case ReadOnly:
		return "read"
	default:
		return "destructive"
	}
}

// Policy says which lossless repairs are made for a tool of a given risk. What
// it withholds becomes a suggestion.
type Policy string

const (
	// Balanced, the default: every rule for tools that read or write, only
	// representation for destructive ones.
	Balanced Policy = "balanced"
	// Strict: every rule for tools that read, only representation for tools
	// that write, nothing for destructive ones.
	Strict Policy = "strict"
	// Off: nothing is mended, not even suggested.
	Off Policy = "off"
)

// Rule names a way of mending without loss.
type Rule string

// Rules of representation undo an encoding. No name and no value of the caller's
// is read differently.
const (
	RuleText         Rule = "arguments_text"   // the arguments came as text: JSON in a string or a code fence, Python's spelling, a comma too many
	RuleEmpty        Rule = "arguments_empty"  // null or blank for no arguments
	RuleNumberText   Rule = "number_text"      // "42" for 42
	RuleBooleanText  Rule = "boolean_text"     // "true" for true
	RulePythonText   Rule = "python_text"      // "True" for true
	RuleArrayText    Rule = "array_text"       // "[1]" for [1]
	RuleObjectText   Rule = "object_text"      // "{}" for {}
	RuleItemText     Rule = "item_text"        // ["{}"] for [{}]
	RuleIntegerToken Rule = "integer_for_text" // 42 for "42"
	RuleDateTime     Rule = "date_time"        // a blank for the T of RFC 3339
)

// The other rules read what was sent as the one thing it can mean.
const (
	RuleEnvelope Rule = "envelope"       // {"arguments": {…}} for {…}
	RuleWrap     Rule = "one_for_list"   // "a" for ["a"]
	RuleUnwrap   Rule = "list_for_one"   // ["a"] for "a"
	RuleNull     Rule = "null_for_none"  // null for an optional field, where nothing is changed by the tool
	RuleDefault  Rule = "schema_default" // a required field whose value the schema itself gives
	RuleKey      Rule = "key_spelling"   // user_id for userId
	RuleValue    Rule = "value_spelling" // "Open" for "open"
	RuleToolName Rule = "tool_name"      // readFile for read_file
)

func (r Rule) representation() bool {
	switch r {
	case RuleText, RuleEmpty, RuleNumberText, RuleBooleanText, RulePythonText, RuleArrayText, RuleObjectText, RuleItemText, RuleIntegerToken, RuleDateTime:
		return true
	}
	return false
}

// Permits reports whether a call that needs these rules may be sent mended.
// Where only representation is allowed, one kind of slip is: several at once
// are a sign that more is wrong than we can see.
func (p Policy) Permits(risk Risk, rules ...Rule) bool {
	switch {
	case p != Balanced && p != Strict && p != "":
		return false // Off, or a word nobody knows
	case risk == ReadOnly, risk == Write && p != Strict:
		return true
	case p == Strict && risk != Write:
		return false
	}
	for _, r := range rules {
		if !r.representation() || r != rules[0] {
			return false
		}
	}
	return true
}
