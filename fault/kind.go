package fault

// The kinds of the first eight, which most failures are.
const (
	// CommandNotFound: the program cannot be found where the client looks for it, or
	// the program is there and has no such command of its own.
	CommandNotFound Kind = "command_not_found"
	// ConnectionRefused: nothing listens at the address, or no way leads there.
	ConnectionRefused Kind = "connection_refused"
	// Timeout: no answer in time, for a reason that is not known.
	Timeout Kind = "timeout"
	// AuthFailed: the server or its sign-in service did not accept who we are.
	AuthFailed Kind = "auth_failed"
	// MissingEnvVar: a variable the server needs is not set.
	MissingEnvVar Kind = "missing_env_var"
	// TransportMismatch: both sides speak MCP, but over different transports.
	TransportMismatch Kind = "transport_mismatch"
	// PermissionDenied: the operating system said no.
	PermissionDenied Kind = "permission_denied"
	// Unknown, the eighth, stands in fault.go.
)

// Getting the program to run.
const (
	// CommandQuoting: the command line was cut at a space or lost its quotes.
	CommandQuoting Kind = "command_quoting"
	// PackageNotFound: the registry has no such package, version or executable.
	PackageNotFound Kind = "package_not_found"
	// PackageCacheCorrupt: an earlier installation broke off and left half of its files.
	PackageCacheCorrupt Kind = "package_cache_corrupt"
	// DependencyBreak: a dependency changed its interface under the server.
	DependencyBreak Kind = "dependency_break"
	// MissingDependency: a library or program the server needs is not installed.
	MissingDependency Kind = "missing_dependency"
	// RuntimeVersion: Node, Python or Java is too old or too new for the server.
	RuntimeVersion Kind = "runtime_version"
	// RuntimeArch: the program was built for another processor or system.
	RuntimeArch Kind = "runtime_arch"
	// DockerUnavailable: the container engine does not answer.
	DockerUnavailable Kind = "docker_unavailable"
	// ConfigInvalid: the configuration cannot be read or asks for what cannot be.
	ConfigInvalid Kind = "config_invalid"
	// Encoding: text could not be written or read in the system's character set.
	Encoding Kind = "encoding"
	// Disk: no room, or a place that cannot be written to.
	Disk Kind = "disk"
	// PortInUse: another program listens on the port the server wants.
	PortInUse Kind = "port_in_use"
	// ResourceLocked: another process holds a file, profile or database.
	ResourceLocked Kind = "resource_locked"
	// SpawnConflict: the server was started twice and stands in its own way.
	SpawnConflict Kind = "spawn_conflict"
)

// Keeping the connection.
const (
	// SessionExpired: the server no longer knows our session.
	SessionExpired Kind = "session_expired"
	// ServerCrashed: the process ended when it should not have.
	ServerCrashed Kind = "server_crashed"
	// ServerHung: the process lives and does nothing.
	ServerHung Kind = "server_hung"
	// StdoutPollution: something other than protocol messages was on standard output.
	StdoutPollution Kind = "stdout_pollution"
	// ProtocolVersion: the two sides know no common version of MCP.
	ProtocolVersion Kind = "protocol_version"
	// ConnectionReset: a connection that worked was cut.
	ConnectionReset Kind = "connection_reset"
	// RateLimited: asked too often.
	RateLimited Kind = "rate_limited"
	// TLS: the certificate or the handshake was not accepted.
	TLS Kind = "tls"
	// DNS: the name of the host leads nowhere.
	DNS Kind = "dns"
	// Proxy: an HTTP or SOCKS proxy stands between and does not let us through.
	Proxy Kind = "proxy"
	// HostHeaderRejected: the server guards against foreign Host or Origin headers.
	HostHeaderRejected Kind = "host_header_rejected"
	// WrongEndpoint: something answers at the URL, and it is not an MCP server.
	WrongEndpoint Kind = "wrong_endpoint"
	// WrongInstance: an MCP server answers, and it is another one.
	WrongInstance Kind = "wrong_instance"
	// MessageTooLarge: a message is longer than one of the sides can read.
	MessageTooLarge Kind = "message_too_large"
)

// A call's own matter: the server is well.
const (
	// MethodNotFound: the server does not offer what was asked for.
	MethodNotFound Kind = "method_not_found"
	// InvalidArguments: the arguments do not fit the tool.
	InvalidArguments Kind = "invalid_arguments"
	// SchemaRejected: a tool's schema is not accepted by the model's provider or the client.
	SchemaRejected Kind = "schema_rejected"
	// ToolNameInvalid: a tool's name is too long or holds a character it may not.
	ToolNameInvalid Kind = "tool_name_invalid"
	// TooManyTools: more tools than the model's provider takes.
	TooManyTools Kind = "too_many_tools"
	// OutputSchema: the tool ran, and its result does not fit its own schema.
	OutputSchema Kind = "output_schema"
	// ResultTooLarge: the tool ran, and its result is more than the client takes.
	ResultTooLarge Kind = "result_too_large"
	// StaleTools: the server has no tool of that name (any more).
	StaleTools Kind = "stale_tools"
	// AgentLoop: the model calls for a tool that it was not given.
	AgentLoop Kind = "agent_loop"
	// ToolFailure: the tool ran and says itself that it failed.
	ToolFailure Kind = "tool_failure"
)

// Scope says whom a kind of trouble concerns.
type Scope string

const (
	// OfSetup: somebody has to change something before it can work: the
	// configuration, a sign-in, an installation. Starting again does not help.
	OfSetup Scope = "setup"
	// OfReach: the server cannot be reached or does not live. It counts against
	// the server's health.
	OfReach Scope = "reach"
	// OfCall: the server is well; the trouble belongs to one call or one tool.
	OfCall Scope = "call"
)

// About is what can be said of every failure of one kind.
type About struct {
	// Title is a short name for people, such as "command not found".
	Title string
	// Explanation and Fix are templates: {command|the program} stands for the
	// command's name where it is known and for "the program" where it is not.
	// Explanation is a sentence; Fix is a hint, lower case, no full stop.
	Explanation string
	Fix         string
	// Retryable says that the same thing may go well later although nobody has
	// changed anything. It never holds for sign-in and security. Whether a call
	// may be sent again is another question, and Decide answers it.
	Retryable bool
	Scope     Scope
}

// About explains a kind. A kind nobody has listed is explained like Unknown.
func (k Kind) About() About {
	if i, ok := kindIndex[k]; ok {
		return kinds[i].About
	}
	return kinds[kindIndex[Unknown]].About
}

// Kinds lists all kinds, in the order of the table.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i, row := range kinds {
		all[i] = row.Kind
	}
	return all
}

var kindIndex = func() map[Kind]int {
	m := make(map[Kind]int, len(kinds))
	for i, row := range kinds {
		m[row.Kind] = i
	}
	return m
}()

const again, notAgain = true, false

// unknownSubcommand is said of CommandNotFound where the program is there and only
// what it should do is not known to it.
var unknownSubcommand = About{
	Explanation: "{command|The program} was started and does not know the command {subcommand}: a plugin is missing, or this is another version than the entry was written for.",
	Fix:         "install what adds {subcommand} to {command|the program}, or correct the arguments of the entry",
}

// kinds is everything else we say about each kind, and the only place where we say it.
var kinds = []struct {
	Kind
	About
}{
	{CommandNotFound, About{"command not found",
		"The program {command|that runs the server} was not found. Programs started from a desktop see a shorter PATH than a terminal does.",
		"write the absolute path of {command|the program} into the configuration, or install it",
		notAgain, OfSetup}},
	{ConnectionRefused, About{"connection refused",
		"Nothing answers at {address|the server's address}.",
		"start the server; if it runs, check host and port (inside a container localhost is the container itself)",
		again, OfReach}},
	{Timeout, About{"timed out",
		"No answer came in time. The work may still be going on at the other side.",
		"raise the timeout if the server is slow to start (a first npx or uvx run downloads packages); otherwise look at its log",
		again, OfReach}},
	{AuthFailed, About{"sign-in failed",
		"The server wants credentials, and was given none that it accepts.",
		"sign in again, or check the token, its scopes and the name of the variable that carries it",
		notAgain, OfSetup}},
	{MissingEnvVar, About{"variable not set",
		"The server needs {variable|an environment variable} and does not get it. Servers see only the variables their client passes on.",
		"set {variable|the variable} in the env block of the server's configuration entry",
		notAgain, OfSetup}},
	{TransportMismatch, About{"wrong transport",
		"The server speaks MCP over another transport than the one configured (SSE, Streamable HTTP or stdio).",
		"change the transport type of the entry; try Streamable HTTP first, then SSE",
		notAgain, OfSetup}},
	{PermissionDenied, About{"permission denied",
		"The system does not allow access to {path|a file or program the server needs}.",
		"give the user who runs the client access to {path|it}; do not run the server as root",
		notAgain, OfSetup}},

	{CommandQuoting, About{"command line cut apart",
		"The command line was cut at a space, so a piece of a path was taken for the program.",
		"give the program and each argument as separate entries, or use a path without spaces",
		notAgain, OfSetup}},
	{PackageNotFound, About{"package not found",
		"There is no {package|package of that name and version} that could be run: it is called otherwise, or not installed.",
		"check the spelling, scope and version of {package|the package} in the server's own documentation; for python -m, install it for that very Python",
		notAgain, OfSetup}},
	{PackageCacheCorrupt, About{"broken package cache",
		"An earlier installation broke off and left half of its files at {path|the package cache}.",
		"remove the damaged folder from the package cache (for npx it is below ~/.npm/_npx, for uvx: uv cache clean) and start again, once",
		notAgain, OfSetup}},
	{DependencyBreak, About{"incompatible dependency",
		"The server was written for another version of {package|a library that it uses}.",
		"pin the library to the version before (for uvx: --with \"mcp<2\"), or update the server",
		notAgain, OfSetup}},
	{MissingDependency, About{"missing dependency",
		"The server needs {package|something} that is not installed where it runs.",
		"install {package|it} into the environment that runs the server",
		notAgain, OfSetup}},
	{RuntimeVersion, About{"wrong runtime version",
		"The server does not run on this version of its language runtime. Desktop programs often pick an older one than your terminal.",
		"install the version that the server's message or documentation asks for, and put it first in the PATH of the entry or name its absolute path",
		notAgain, OfSetup}},
	{RuntimeArch, About{"built for another machine",
		"The program was built for another processor or operating system.",
		"install the build for this machine",
		notAgain, OfSetup}},
	{DockerUnavailable, About{"docker does not answer",
		"The container engine is not running or cannot be reached.",
		"start Docker (or set DOCKER_HOST if its socket is elsewhere)",
		again, OfReach}},
	{ConfigInvalid, About{"invalid configuration",
		"The configuration cannot be read, or asks for something that cannot be: a file, folder, option or URL that does not exist.",
		"correct the entry; mcpmend check shows the place",
		notAgain, OfSetup}},
	{Encoding, About{"character encoding",
		"The server wrote or read characters that the system's character set does not know.",
		"set PYTHONUTF8=1 and PYTHONIOENCODING=utf-8 in the env block of the entry",
		notAgain, OfSetup}},
	{Disk, About{"cannot write to disk",
		"There is no room at {path|the place where the server writes}, or it is read-only.",
		"free some space, or point the cache folders (npm_config_cache, UV_CACHE_DIR, UV_TOOL_DIR) elsewhere",
		notAgain, OfSetup}},
	{PortInUse, About{"port in use",
		"Another program already listens on {address|the port the server wants}; often it is an older copy of the same server.",
		"stop the other program, or give the server another port",
		again, OfReach}},
	{ResourceLocked, About{"locked by another process",
		"Another process holds {path|something the server needs}.",
		"close the other process, or give this server a profile or file of its own",
		again, OfReach}},
	{SpawnConflict, About{"started twice",
		"A second copy of the server was started while the first still runs.",
		"leave one client to start it, or share one through the gateway",
		again, OfReach}},

	{SessionExpired, About{"session lost",
		"The server no longer knows the session; it was restarted, or forgot it.",
		"connect the server again in the client; through mcpmend this happens by itself",
		again, OfReach}},
	{ServerCrashed, About{"server crashed",
		"The server's process {ended|ended unexpectedly}.",
		"look at the last lines the server wrote (mcpmend check shows them); through mcpmend it is started again",
		again, OfReach}},
	{ServerHung, About{"server hangs",
		"The server's process lives but neither answers nor works.",
		"restart the server; if it happens again, give its calls a shorter limit",
		again, OfReach}},
	{StdoutPollution, About{"log lines on standard output",
		"The server writes something other than protocol messages to standard output.",
		"make the server log to stderr; through mcpmend such lines are set aside",
		notAgain, OfSetup}},
	{ProtocolVersion, About{"no common protocol version",
		"The two sides know no common version of the protocol.",
		"update the older side; through mcpmend the versions are bridged",
		notAgain, OfSetup}},
	{ConnectionReset, About{"connection cut",
		"A connection that worked was cut by the server or by something between.",
		"connect again; if it happens after a fixed time, raise the idle limit of the proxy in front of the server",
		again, OfReach}},
	{RateLimited, About{"rate limited",
		"The server, or a service behind it, was asked too often.",
		"wait as long as it asks, then make fewer calls at once",
		again, OfCall}},
	{TLS, About{"certificate not trusted",
		"The server's certificate was not accepted, or one side speaks TLS and the other does not.",
		"let the runtime know your CA (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE) and check that the URL begins with what the server speaks, https or http; never switch the check off",
		notAgain, OfSetup}},
	{DNS, About{"host name not found",
		"The name {host|of the server} could not be resolved.",
		"check the spelling of the host and whether a VPN or proxy is needed",
		again, OfReach}},
	{Proxy, About{"proxy in the way",
		"An HTTP or SOCKS proxy between client and server does not let the request through.",
		"set HTTPS_PROXY and NO_PROXY for the server, or install what its proxy support needs",
		notAgain, OfSetup}},
	{HostHeaderRejected, About{"host not allowed",
		"The server refuses requests for this host name or origin, to guard against DNS rebinding.",
		"add the host name to the server's own list of allowed hosts",
		notAgain, OfSetup}},
	{WrongEndpoint, About{"not an MCP server",
		"Something answers at the URL, but it is a web page or another service.",
		"check the path of the URL (often /mcp or /sse) and whether a login page stands before it",
		notAgain, OfSetup}},
	{WrongInstance, About{"another server answers",
		"An MCP server answers, but it is not the one the entry means.",
		"check which program listens on the port",
		notAgain, OfSetup}},
	{MessageTooLarge, About{"message too large",
		"A message is longer than one of the sides can read.",
		"ask for less at once, or raise the limit of the side that gave up",
		notAgain, OfCall}},

	{MethodNotFound, About{"not offered",
		"The server does not offer what was asked for. For optional features this is no fault.",
		"nothing, if the tools work; otherwise update the server",
		notAgain, OfCall}},
	{InvalidArguments, About{"invalid arguments",
		"The arguments do not fit what {tool|the tool} takes.",
		"correct the arguments against the tool's schema and call again",
		notAgain, OfCall}},
	{SchemaRejected, About{"tool schema rejected",
		"The schema of {tool|a tool} is not accepted by the model's provider or by the client; one such tool can block every prompt.",
		"switch that tool off, or update its server",
		notAgain, OfCall}},
	{ToolNameInvalid, About{"tool name rejected",
		"The name of {tool|a tool} is too long or holds a character that is not allowed.",
		"shorten the name under which the server is configured",
		notAgain, OfCall}},
	{TooManyTools, About{"too many tools",
		"The servers together offer more tools than the model's provider takes.",
		"switch off the servers and tools that are not needed",
		notAgain, OfCall}},
	{OutputSchema, About{"result does not fit its schema",
		"The tool ran, but its result does not fit the schema it declares.",
		"do not call it again for this; report it to the server's author",
		notAgain, OfCall}},
	{ResultTooLarge, About{"result too large",
		"The tool ran, but its result is larger than the client takes.",
		"ask for less: a page, a filter, a smaller range",
		notAgain, OfCall}},
	{StaleTools, About{"no such tool",
		"The server has no tool {tool|of that name}; the list of tools may be out of date.",
		"list the tools again",
		notAgain, OfCall}},
	{AgentLoop, About{"tool not available",
		"The model called for {tool|a tool} that it was not given, often because its server was not connected.",
		"check that the server is connected before going on; do not repeat the call",
		notAgain, OfCall}},
	{ToolFailure, About{"tool failed",
		"The tool ran and reported a failure of its own.",
		"read the tool's message; the connection is well",
		notAgain, OfCall}},

	{Unknown, About{"unknown",
		"The cause is not known.",
		"look at the last lines the server wrote; mcpmend check shows them and how far it got",
		again, OfReach}},
}
