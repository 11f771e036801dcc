package driver

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// Outcome is what a caller is told about its call.
type Outcome string

const (
	// OK: the answer says that the tool ran.
	OK Outcome = "ok"
	// Failed: the answer says, or lets the caller believe, that it did not.
	Failed Outcome = "fail"
	// Unknown: the answer says that nobody knows.
	Unknown Outcome = "unknown"
	// None: no answer came.
	None Outcome = "none"
)

// Statement is what mcpmend adds to a result as data. Any other system may
// use the same key.
type Statement struct {
	Outcome      string `json:"outcome"`
	SafeToRetry  bool   `json:"safe_to_retry"`
	Kind         string `json:"kind"`
	Attempts     int    `json:"attempts"`
	RetryAfterMS int    `json:"retry_after_ms"`
}

// statementKey is where it stands in _meta.
const statementKey = "mcpmend.dev/outcome"

// The rule by which every answer of every system is read:
//
//  1. A result without isError says that the tool ran.
//  2. A statement in _meta that names an outcome is taken at its word.
//  3. Words that say that the outcome is unknown mean unknown.
//  4. Words that claim non-execution, or a code with which a server refuses
//     before running anything, mean failed, even if they are wrong.
//  5. The usual words and codes of a lost connection, a time-out or an
//     unreadable reply mean unknown: they claim nothing, and a careful caller
//     takes them so.
//  6. Any other error means failed, because that is what a caller will think.
func readOutcome(m *rpc.Message) (Outcome, *Statement, string) {
	if m.Error != nil {
		return readError(m.Error.Code, m.Error.Message), nil, m.Error.Error()
	}
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		ResultType string                     `json:"resultType"`
		Meta       map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return Unknown, nil, "unreadable result: " + err.Error()
	}
	var text strings.Builder
	for _, c := range result.Content {
		text.WriteString(c.Text)
	}
	if result.ResultType == "input_required" {
		return Failed, nil, "input_required"
	}
	if !result.IsError {
		return OK, nil, text.String()
	}
	var said *Statement
	if raw, ok := result.Meta[statementKey]; ok {
		said = new(Statement)
		if err := json.Unmarshal(raw, said); err != nil {
			said = nil
		}
	}
	if said == nil || said.Outcome == "" {
		return readError(0, text.String()), said, text.String()
	}
	switch said.Outcome {
	case "executed":
		return OK, said, text.String()
	case "not_executed":
		return Failed, said, text.String()
	}
	return Unknown, said, text.String()
}

var (
	saysUnknown      = regexp.MustCompile(`(?i)\b(outcome( is)? unknown|unknown outcome|may (or may not )?have (run|been executed))\b`)
	claimsNothingRan = regexp.MustCompile(`(?i)\b(rejected by transport|not executed|not sent|never sent|refused|session not found|no valid session|unauthori[sz]ed|forbidden|too many requests|not found|not connected)\b|\b4(00|01|03|04|05|09|13|15|29)\b`)
	claimsNothing    = regexp.MustCompile(`(?i)\b(connection (was )?(closed|reset|lost)|client is closing|EOF|timed? ?out|time-out|deadline exceeded|terminated|broken pipe|reset by peer|hang up|aborted|fetch failed|disconnect(ed)?|exited|closed|(process|server) (has )?(failed|died|crashed|ended)|invalid character|unexpected (token|end)|parse error|not valid JSON|trailing data|inbound .* exceeded|invalid (message|JSON))\b|\b5(00|02|03|04|24)\b`)
)

func readError(code int, text string) Outcome {
	switch {
	case saysUnknown.MatchString(text):
		return Unknown
	case code == -32700, code == -32600, code == -32601, code == -32602, code <= -32020 && code >= -32022:
		return Failed
	case claimsNothingRan.MatchString(text):
		return Failed
	case code == -32000, code == -32001, claimsNothing.MatchString(text):
		return Unknown
	}
	return Failed
}
