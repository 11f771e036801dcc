package guard

import (
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// MetaOutcome is the key of _meta under which a reply of ours says as data what
// its text says in words.
const MetaOutcome = "mcpmend.dev/outcome"

// settle is our answer to a request that could not be finished. A tool call gets
// a result, because only results are sure to reach the model; everything else
// gets an error.
func settle(request *wire.Message, f *fault.Fault) wire.Message {
	outcome, text := "unknown", "It is not known whether it ran. Check before you repeat it."
	switch f.Delivery {
	case fault.Unsent, fault.Unparseable, fault.Unread, fault.Refused:
		outcome, text = "not_executed", "It did not run."
	}
	data := []byte(fmt.Sprintf(`{"outcome":%q}`, outcome))
	cause := f.Error()
	if last := lastWords(f); last != "" {
		cause += "; last output: " + last
	}
	if request.Method() != wire.MethodCall {
		return wire.NewError(request.ID(), wire.CodeServerTrouble, cause, wire.Set(nil, data, MetaOutcome))
	}
	content := wire.AppendString([]byte(`[{"type":"text","text":`), "The call was not finished. "+text+" Cause: "+cause)
	content = append(content, `}]`...)
	result := wire.Set(nil, data, "_meta", MetaOutcome)
	result = wire.Set(result, []byte("true"), "isError")
	result = wire.Set(result, content, "content")
	return wire.NewResult(request.ID(), result)
}

func lastWords(f *fault.Fault) string {
	lines := f.Stderr
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, " | ")
}
