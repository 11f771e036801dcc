package wire

// Era is which of the two generations of MCP a peer speaks.
type Era uint8

const (
	// EraUnknown: nobody has found out yet.
	EraUnknown Era = iota
	// Legacy: up to 2025-11-25, with initialize, sessions, ping and requests
	// from server to client.
	Legacy
	// Modern: 2026-07-28, stateless; every request says its version.
	Modern
)

func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

// Versions we speak as ourselves. What we only relay may be any.
const (
	ModernVersion = "2026-07-28"
	LegacyVersion = "2025-11-25"
)

// EraOf tells the era of a protocol version by its date. Something that is no
// date and sorts behind the modern ones is taken for modern, so that the server
// itself can refuse it.
func EraOf(version string) Era {
	switch {
	case version == "":
		return EraUnknown
	case version >= ModernVersion:
		return Modern
	}
	return Legacy
}

// Methods that some room on the path treats in a way of its own.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	MethodDiscover    = "server/discover"
	MethodPing        = "ping"
	MethodCall        = "tools/call"
	MethodTools       = "tools/list"
	MethodListen      = "subscriptions/listen"
	MethodCancelled   = "notifications/cancelled"
	MethodProgress    = "notifications/progress"
)

// Keys of _meta that carry the protocol itself in the modern era.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// Error codes of JSON-RPC and MCP that we act on or send.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// CodeServerTrouble is our own code for a request that could not be finished.
// It stands outside the range that JSON-RPC and MCP reserve, because a receiver
// may not read a meaning into those.
const CodeServerTrouble = -31999

// EraOfRequest tells the era from the message itself: a modern request names
// its version, initialize is legacy, server/discover modern, and anything else
// does not say.
func EraOfRequest(m *Message) Era {
	if v, ok := Member(m.Params(), "_meta", MetaVersion); ok {
		if version, ok := StringValue(v); ok {
			return EraOf(version)
		}
	}
	switch m.Method() {
	case MethodInitialize:
		return Legacy
	case MethodDiscover:
		return Modern
	}
	return EraUnknown
}
