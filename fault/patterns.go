package fault

// How sure a phrase makes us when it is all we have.
const (
	// plain: the phrase names the cause, and hardly ever means anything else.
	plain = 0.9
	// likely: the phrase names the cause, but other programs use it for other things.
	likely = 0.75
	// hint: the phrase fits several causes, and this one is the most frequent.
	hint = 0.6
	// narrow: like plain, for a phrase that contains, or comes along with, a more
	// general one of another kind and must win over it.
	narrow = 0.95
	// enough is what a diagnosis needs; below it the kind stays Unknown.
	enough = 0.5
)

// patterns is every phrase by which a message is recognised. How a phrase is
// written is told in words.go. To add one: put it in the row of its kind, and a
// real message in testdata/messages.txt that shows it. Leave out what only says
// that something broke ("connection closed", "fetch failed"): those have a dozen
// causes, and to name one of them would be to guess.
var patterns = []struct {
	kind    Kind
	sure    float64
	phrases []string
}{
	{CommandNotFound, narrow, []string{
		"posix_spawn <command>",
		"cannot run program <command>",
		"spawn <command> enoent",
		"spawn ... enoent",
		"fork exec <command> no such file or directory",
		"spawn einval", // a .cmd or .bat file, which Node does not start without a shell
		"exec <command> executable file not found",
		"executable not found in path <command>",
		"env <command> no such file or directory",
	}},
	{CommandNotFound, plain, []string{
		"command not found <command>",
		"<command> command not found",
		"executable not found",
		"<command> is not recognized as an internal",
		"<command> is not recognized as the name of a cmdlet",
		"the command <command> ... was not found",
		"<command> not found please",
		"<command> not found in path",
		"<command> is not installed or",
		"sh <number> <command> not found",
		"bad interpreter",
	}},
	{CommandNotFound, likely, []string{
		"<program> is not installed",
		"find ... executable|binary",
		"exec ... no such file or directory",
		"unknown command <command>",
		"program not found",
		"errno 2 no such file or directory <program>",
		"failed to spawn|start|execute ... no such file or directory",
		"winerror 2",
		"the system cannot find the file specified",
	}},
	{CommandNotFound, hint, []string{
		"os error 2",
		"filenotfounderror",
		"the system cannot find the path specified",
		"exited|exit with|status|code ... 127",
	}},

	{CommandQuoting, narrow, []string{
		"<drive> is not recognized",
		"cannot find module c program",
		"unterminated quoted string",
		"unexpected eof while looking for matching",
		"filename directory name or volume label syntax is incorrect",
	}},
	{CommandQuoting, plain, []string{
		"string is missing the terminator",
		"in expression or statement",
	}},

	{DockerUnavailable, narrow, []string{
		"cannot connect to the docker daemon",
		"is the docker daemon running",
		"connect enoent ... docker",
		"error during connect ... docker",
		"pipe docker_engine|dockerdesktoplinuxengine",
		"cannot connect to podman",
	}},

	{MissingEnvVar, plain, []string{
		"<variable> not set",
		"<variable> is not set",
		"<variable> is not defined",
		"<variable> must be set",
		"<variable> is required",
		"<variable> is missing",
		"<variable> environment variable",
		"environment variable <variable> ... not|required|missing|must",
		"missing environment variable|variables <variable>",
		"missing required environment variable|variables",
		"missing required env",
		"required environment variable|variables",
		"environment variable|variables not set",
		"environment variable|variables is|are not set",
		"setting the <variable>",
		"please set|provide <variable>",
		"missing <variable>",
		"keyerror <variable>",
	}},

	{PackageNotFound, narrow, []string{
		"no module named <server>",
		"no executables are provided",
		"is not in this registry",
		"requested resource <package> could not be found",
		"err_pnpm_fetch_404",
		"could not determine executable to run",
		"<package> was not found in the package registry",
		"repository does not exist",
		"there is no version of <package>",
		"there are no versions of <package>",
		"no matching version found for <package>",
		"no matching distribution found for <package>",
		"is not provided by package <package>",
		"python|python3|exe no module named <package>",
		"pull access denied for <package>",
		"manifest unknown",
	}},
	{PackageNotFound, plain, []string{
		"npm err|error 404",
		"npm err|error code e404",
		"npm err|error code etarget",
	}},

	{PackageNotFound, likely, []string{
		"package <package> not found",
		"package not found",
		"no solution found when resolving",
	}},

	{PackageCacheCorrupt, narrow, []string{
		"cannot find module|package ... _npx",
		"err_module_not_found ... _npx",
		"enotempty",
		"eintegrity",
		"tar_entry_error",
		"ecompromised",
	}},

	{DependencyBreak, narrow, []string{
		"no module named mcp.server.fastmcp",
		"cannot import name <package> from",
		"does not provide an export named",
		"err_package_path_not_exported",
	}},
	{DependencyBreak, likely, []string{
		"module <package> has no attribute",
	}},

	{MissingDependency, likely, []string{
		"package is not installed",
		"modulenotfounderror no module named <package>",
		"importerror no module named <package>",
		"cannot find package <package>",
		"gyp err",
		"distribution <package> is not found",
		"cannot find module <module>",
		"error while loading shared libraries <package>",
		"executable doesn't exist at <path>",
		"playwright install",
	}},

	{RuntimeVersion, narrow, []string{
		"requires|require ... node|python|java version",
		"cannot find module node",
		"does not satisfy python",
		"requires a different python",
		"requires python",
		"requires node",
		"node_module_version",
		"compiled against a different node.js version",
		"err_require_esm",
		"ebadengine",
		"unsupported engine",
		"err_unknown_builtin_module",
		"unsupportedclassversionerror",
		"readablestream|fetch|file|headers|crypto|structuredclone is not defined",
		"install or update .net",
	}},
	{RuntimeVersion, hint, []string{
		"syntaxerror unexpected token",
		"syntaxerror unexpected identifier",
		"syntaxerror invalid syntax",
		"cannot use import statement outside a module",
	}},
	{RuntimeVersion, likely, []string{
		"please upgrade|update node|python|java|nodejs",
	}},

	{RuntimeArch, plain, []string{
		"bad cpu type",
		"exec format error",
		"no matching manifest for",
		"incompatible architecture",
		"wrong elf class",
		"is not a valid win32 application",
		"winerror 193",
		"unsupported platform",
		"version glibc_2 ... not found",
	}},

	{Encoding, plain, []string{
		"unicodeencodeerror",
		"unicodedecodeerror",
		"codec can't encode|decode",
		"illegal multibyte sequence",
	}},

	{Disk, plain, []string{
		"enospc",
		"no space left on device",
		"erofs",
		"read-only file system",
		"disk quota exceeded",
		"not enough space on the disk",
	}},

	{PortInUse, narrow, []string{
		"eaddrinuse ... address already in use <address>",
		"eaddrinuse",
		"listen tcp <address> bind address already in use",
		"address already in use",
		"port <port> is already in use",
		"port is already allocated",
		"only one usage of each socket address",
		"errno 98|48",
	}},

	{ResourceLocked, plain, []string{
		"is already in use ... isolated",
		"browser is already in use",
		"data directory is already in use",
		"browser is already running",
		"database is locked",
		"being used by another process",
		"locked by another process",
		"ebusy",
	}},

	{SpawnConflict, likely, []string{
		"another instance ... running",
		"instance is already running",
		"container name ... is already in use",
		"text file busy",
		"etxtbsy",
	}},

	{PermissionDenied, plain, []string{
		"eacces permission denied ... <path>",
		"eacces",
		"eperm",
		"permission denied",
		"operation not permitted",
		"access is denied",
		"root-owned files",
		"notcapable requires", // deno's word for it
	}},
	{PermissionDenied, hint, []string{
		"exited|exit with|status|code ... 126",
	}},

	{ConfigInvalid, plain, []string{
		"bad escaped character in json",
		"bad control character in string literal in json",
		"after property value in json",
		"expected double-quoted property name",
		"load|loading|parse|parsing|read|reading config|configuration|settings",
		"load|loading|parse|parsing|read|reading mcp config|configuration|settings",
		"invalid json in ... config",
		"invalid environment variable format",
		"expecting property name enclosed in double quotes",
		"does not adhere to ... schema",
		"non-https urls",
		"must supply a command",
		"failed to parse ... config|configuration|settings",
		"invalid configuration",
		"config|configuration file ... not found",
		"either command or url",
		"is not supported for stdio",
		"toml parse|decode error",
		"invalid reference format",
		"error accessing directory <path>",
		"project directory <path> does not exist",
		"must be a valid json string",
	}},
	{ConfigInvalid, likely, []string{
		"missing field <name>",
		"unknown field|variant <name>",
		"no command specified|provided|configured",
		"duplicate key",
		"unknown option|flag",
		"mcpservers ... required|invalid|expected",
		"unrecognized option|arguments|argument",
		"unexpected argument <name> found",
		"invalid url",
		"unsupported protocol scheme",
		"not enough non-option arguments",
		"following arguments are required",
		"required option ... not specified",
	}},

	{AuthFailed, narrow, []string{
		"sso session ... expired",
	}},
	{AuthFailed, plain, []string{
		"token is|was invalid|missing|required|expired|malformed",
		"invalid token",
		"could not load ... credentials",
		"unable to locate credentials",
		"client registration failed|rejected",
		"protected resource ... does not match",
		"code_verifier|code_challenge",
		"redirect uri|redirect_uri ... mismatch|not|does",
		"invalid_grant",
		"invalid_token",
		"invalid_client",
		"unauthorized_client",
		"insufficient_scope",
		"invalid_scope",
		"login_required|interaction_required|consent_required",
		"missing authorization header",
		"missing bearer",
		"no authorization provided",
		"insufficient permissions|scopes|privileges",
		"dynamic client registration",
		"invalid redirect uri|redirect_uri",
		"invalid code verifier",
		"missing required scope|scopes",
		"invalid access token",
		"invalid or expired token",
		"token ... expired|revoked",
		"jwt expired",
		"refresh_token is invalid|expired|revoked",
		"refresh token ... invalid|expired|revoked|failed",
		"token refresh failed",
		"api token|key ... is invalid",
		"invalid|incorrect api|auth key|token",
		"bad credentials",
		"invalid credentials",
		"authentication required|failed",
		"authorization required|failed",
		"oauth ... failed|error|rejected",
		"401 unauthorized",
		"403 forbidden",
		"not logged in",
		"requires authentication",
	}},
	{AuthFailed, likely, []string{
		"reauthenticate|reauthorize|reauthentication",
		"re authenticate|authorize",
		"auth failed|error|required",
		"unauthorized",
		"unauthenticated",
		"forbidden",
		"http|status|code|statuscode 401|403",
		"error 401|403",
		"got|received|returned|with 401|403",
		"access denied",
		"permission_denied",
		"not accessible by",
		"please log|sign in",
		"please authenticate|login",
	}},

	{HostHeaderRejected, narrow, []string{
		"misdirected request",
		"invalid host header",
		"host ... is not allowed",
		"invalid origin",
		"http|status 421",
	}},

	{TLS, narrow, []string{
		"self signed certificate",
		"self-signed certificate",
		"self_signed_cert_in_chain",
		"depth_zero_self_signed_cert",
		"certificate_verify_failed",
		"certificate verify failed",
		"unable_to_verify_leaf_signature",
		"unable to verify the first certificate",
		"unable_to_get_issuer_cert|unable_to_get_issuer_cert_locally",
		"unable to get local issuer certificate",
		"cert_has_expired",
		"certificate has expired",
		"err_tls_cert_altname_invalid",
		"err_cert_invalid|err_cert_authority_invalid|err_cert_date_invalid|err_cert_common_name_invalid",
		"failed to verify certificate",
		"invalid peer certificate",
		"x509 certificate",
		"pkix path building failed",
		"wrong version number",
		"tls handshake",
		"err_ssl_protocol_error|err_ssl_wrong_version_number",
	}},

	{Proxy, narrow, []string{
		"proxy authentication required",
		"http|status|code|statuscode 407",
		"tunneling socket could not be established",
		"socks proxy",
		"err_proxy_connection_failed",
		"cannot connect to proxy",
		"proxyconnect tcp",
		"proxyerror",
	}},

	{Proxy, likely, []string{
		"you are behind a proxy",
	}},

	{DNS, plain, []string{
		"getaddrinfo enotfound|eai_again <address>",
		"enotfound <address>",
		"lookup <address> no such host",
		"enotfound",
		"eai_again",
		"no such host",
		"getaddrinfo",
		"name or service not known",
		"nodename nor servname provided",
		"temporary failure in name resolution",
		"failed to lookup address information",
		"could not resolve host <address>",
		"unknownhostexception",
		"err_name_not_resolved",
	}},

	{ConnectionRefused, plain, []string{
		"econnrefused <address>",
		"econnrefused",
		"dial tcp <address> connect connection refused",
		"connection refused",
		"err_connection_refused",
		"all connection attempts failed",
		"connect call failed",
		"failed to connect to <address> port <port>",
		"errno 111|61",
		"actively refused",
		"no connection could be made",
		"no route to host",
		"network is unreachable",
	}},
	{ConnectionRefused, hint, []string{
		"make sure|ensure the|your|that ... server is running",
		"is your|the ... server running",
		"check if|that|whether your|the ... server is running",
		"502 bad gateway",
		"503 service unavailable",
	}},

	{ConnectionReset, likely, []string{
		"connection reset by peer",
		"connection reset",
		"forcibly closed",
		"socket hang up",
		"other side closed",
		"stream reset",
		"typeerror terminated",
		"premature close",
		"incomplete chunked read",
		"err_incomplete_chunked_encoding",
		"disconnected without sending a response",
		"peer closed connection",
		"http 2 cancel",
		"rst_stream",
		"goaway",
		"network connection was lost",
	}},

	// ECONNRESET is not here: as a fact of a call it is read in facts.go, but in the
	// text of a client it is as often a proxy that never let the connection through.
	{ConnectionReset, hint, []string{
		"connection aborted|dropped|interrupted",
		"stream disconnected|interrupted|ended ... before|unexpectedly|prematurely",
		"closed connection without response",
		"sse stream|connection disconnected|closed|ended|interrupted|lost",
		"err_stream_premature_close",
		"err_connection_reset|err_connection_closed|err_empty_response|err_http2_protocol_error",
		"remoteprotocolerror",
	}},

	{RateLimited, plain, []string{
		"rate limit",
		"rate limited|limiting",
		"rate_limit_exceeded",
		"too many requests",
		"throttlingexception|throttled",
		"quota exceeded",
		"exceeded your current quota",
		"resource_exhausted",
		"http|status|code|error 429",
		"429 request|too",
	}},

	{SessionExpired, narrow, []string{
		"transport not found",
		"session terminated",
		"session expired",
		"session has expired",
		"standalone sse stream failed to reconnect",
		"session not found",
		"session id ... required|missing|expired",
		"session not initialized",
		"before initialization was complete",
		"invalid session",
		"invalid or expired session",
		"no valid session id",
		"missing session id",
		"unknown session",
		"unknown mcp-session-id",
		"mcp-session-id ... required|missing|unknown|invalid",
		"invalid|missing mcp-session-id",
		"session ... does not exist",
		"session ... no longer exists|valid",
		"server not initialized",
		"could not find session",
		"no transport found for sessionid|session",
	}},

	{SessionExpired, hint, []string{
		"server already initialized",
	}},
	{SessionExpired, likely, []string{
		"session|sessionid|session_id ... not found|invalid|unknown|expired",
		"session ... closed|lost|stale",
		"must be initialized",
		"client|connection not initialized",
		"reinitialize",
	}},

	{TransportMismatch, narrow, []string{
		"session_id is required",
		"missing mcp session id for sse",
		"session id for sse",
		"client must accept",
		"attempt to fall back to legacy sse",
		"failed to parse message messages",
		"sse error non-200 status code 400|404|405|406",
		"failed to open sse stream bad|not|method",
		"not acceptable",
		"expected text event stream",
		"content-type ... text event-stream",
		"method not allowed",
		"http|status|code 405|406|415",
		"unsupported media type",
		"invalid transport type",
	}},

	{TransportMismatch, likely, []string{
		"missing sessionid",
		"transport ... not supported|unsupported",
		"unexpected content type",
		"does not support sse|streamable|stdio",
	}},

	{WrongEndpoint, narrow, []string{
		"unexpected token <",
		"invalid character <",
		"doctype html",
		"content type ... text html",
		"without an mcp reply text html",
		"cannot post|get mcp|sse|api|messages",
	}},

	{StdoutPollution, narrow, []string{
		"validation error|errors for jsonrpcmessage",
	}},
	{StdoutPollution, plain, []string{
		"invalid_literal ... expected 2 0",
		"invalid literal value expected 2 0",
		"path jsonrpc",
		"invalid message version tag",
		"failed to parse jsonrpc message",
		"failed to parse json-rpc message",
	}},
	// A parser's complaint speaks of standard output only if nothing says that it
	// read something else, such as a configuration.
	{StdoutPollution, likely, []string{
		"unexpected token ... is not valid json",
		"is not valid json",
		"in json at position",
		"unexpected non-whitespace character after json",
		"invalid character ... looking for beginning of value",
		"invalid character ... after top-level value",
		"unrecognized token ... was expecting",
		"is an invalid start of a value",
	}},

	{ProtocolVersion, narrow, []string{
		"unsupported protocol version <version>",
		"unsupported protocol version",
		"unsupported mcp protocol version",
		"protocol version ... not supported",
		"protocol version ... unsupported",
		"protocol version mismatch",
		"unsupported mcp-protocol-version",
		"unknown method ... initialize",
		"method not found ... initialize",
		"initialize ... method not found",
		"-32022",
	}},

	{MessageTooLarge, plain, []string{
		"bufio.scanner token too long",
		"message too large|big|long",
		"request entity too large",
		"payload too large",
		"http|status|code 413",
	}},

	{MethodNotFound, plain, []string{
		"method not found",
		"method <tool> not found",
		"prompts|resources|tools|logging|completions|sampling|roots not supported",
		"does not support prompts|resources|tools|logging|completions|sampling|roots",
	}},
	{MethodNotFound, likely, []string{
		"-32601",
		"unknown method",
	}},

	{OutputSchema, narrow, []string{
		"invalid structured content",
		"output validation error",
		"outputschema defined",
		"has an output schema but did not return structured content",
		"structured content does not match",
	}},

	{InvalidArguments, plain, []string{
		"invalid enum value",
		"invalid arguments for tool <tool>",
		"invalid arguments",
		"invalid params|parameters",
		"input validation error",
		"validation error for call <tool>",
		"validation error|errors for <tool>",
		"input should be a valid",
		"expected object|array|string|number|boolean|integer received",
		"invalid_type ... expected ... received",
		"missing required argument|parameter|property|field|parameters|arguments",
		"<name> is a required property",
		"unexpected keyword argument",
		"required positional argument",
		"additional properties are not allowed",
		"must have required property",
		"unrecognized_keys",
		"mutually exclusive",
		"field required",
	}},
	{InvalidArguments, likely, []string{
		"must be string|number|object|array|boolean|integer",
		"is not of type",
		"invalid argument|invalid_argument",
		"unknown argument|parameter",
		"cannot be empty|null|blank",
		"must provide|specify either|exactly|one|at",
		"cannot use|specify|combine both",
		"requires an element of type",
		"is required when",
		"cannot deserialize value of type",
		"validating arguments",
	}},

	{InvalidArguments, hint, []string{
		"-32602",
	}},

	{SchemaRejected, narrow, []string{
		"is required to be supplied",
		"in context ... is not permitted",
		"input_schema ... invalid",
		"input_schema ... does not support",
		"input_schema ... field required",
		"invalid schema for function <tool>",
		"invalid_function_parameters",
		"function_declarations ... parameters",
		"functiondeclaration ... parameters|schema",
		"toolspec inputschema",
		"schema is invalid",
		"no schema with key or ref",
		"schema ... incompatible with",
		"reference to undefined schema",
		"can't resolve reference",
		"schema at top-level requires",
		"schema must have ... type",
		"array schema missing items",
		"does not support oneof allof",
		"proto field is not repeating",
		"only allowed for object type",
		"strict mode unknown keyword",
	}},
	{SchemaRejected, plain, []string{
		"input schema|schemas ... invalid|missing|must",
		"inputschema ... invalid|missing|must|invalid_type|invalid_literal",
		"schema ... unsupported",
	}},

	{ToolNameInvalid, narrow, []string{
		"name string should have at most",
		"pattern a za z0",
		"tool name ... exceeds|longer",
		"function name string too long",
		"tools ... name string should|does|too",
		"tool name too long",
		"toolspec name ... constraint",
		"tool name length",
		"tool names must be unique",
		"invalid function name",
		"invalid tool name",
		"duplicate function declaration",
	}},

	{TooManyTools, narrow, []string{
		"more than <number> tools",
		"too many tools",
		"exceeds|exceeded ... tool|tools limit",
		"tools array too long",
	}},

	{ResultTooLarge, plain, []string{
		"tool <tool> response ... exceeds maximum allowed tokens",
		"exceeds maximum allowed tokens",
		"mcpcontenttoolargeerror",
		"response|result|output too large",
		"response|result|output is too large",
		"response|result|output ... exceeds",
	}},

	{ResultTooLarge, hint, []string{
		"maximum context length",
		"prompt is too long",
	}},

	{AgentLoop, likely, []string{
		"no tools available",
		"tool <tool> is not available",
		"unavailable tool <tool>",
		"no such tool available",
		"no such tool",
	}},
	{AgentLoop, plain, []string{
		"recursion limit ... reached",
		"maximum|max iterations|turns",
		"loop detected",
	}},

	{StaleTools, likely, []string{
		"unknown tool <tool>",
		"unknown tool",
		"tool <tool> not found",
		"tool not found",
	}},

	{ToolFailure, hint, []string{
		"success false",
		"error executing tool <tool>",
	}},

	{ServerCrashed, plain, []string{
		"heap out of memory",
		"segmentation fault",
		"core dumped",
		"oomkilled",
		"exit|exited ... 137|139|134",
		"fatal python error",
		"panicked at",
		"killed by signal",
		"panic runtime error",
	}},
	{ServerCrashed, hint, []string{
		"server|process crashed|died|terminated|stopped",
		"unhandled rejection|exception",
		"closed pipe",
		"file already closed",
		"err_stream_destroyed",
		"write after end",
		"epipe",
		"broken pipe",
		"exited before responding",
		"exiting early",
		"server exited",
		"process exited",
		"exited with code|status",
		"exited unexpectedly",
		"uncaughtexception",
		"unhandledpromiserejection",
		"sigkill|sigsegv|sigabrt",
		"calling initialize eof",
		"exit code <number>",
		"exit status <number>",
	}},

	{ServerHung, likely, []string{
		"not responding",
		"unresponsive",
	}},

	{Timeout, likely, []string{
		"etimedout",
		"connecttimeouterror",
		"und_err_connect_timeout|und_err_headers_timeout|und_err_body_timeout",
		"did not respond within",
		"err_connection_timed_out",
		"504 gateway timeout",
	}},
	{Timeout, hint, []string{
		"took too long",
		"not ready after|within",
		"timed out",
		"timeout",
		"time-out",
		"timeouterror",
		"readtimeout",
		"connecttimeout",
		"deadline exceeded",
		"waiting for server to respond",
		"no response ... within|after",
	}},
}

// index holds the phrases by their first plain word.
var index = func() map[string][]*rule {
	m := make(map[string][]*rule)
	for _, row := range patterns {
		for _, source := range row.phrases {
			p, err := parsePhrase(source)
			if err != nil {
				panic(err) // a typing error in the table above, which every test finds
			}
			r := &rule{kind: row.kind, sure: row.sure, phrase: p}
			for _, w := range p.steps[0].words {
				m[w] = append(m[w], r)
			}
		}
	}
	return m
}()

type rule struct {
	kind   Kind
	sure   float64
	phrase phrase
}
