package fault

import "strconv"

// surely is the weight of a fact that can mean one thing only. No text reaches it.
const surely = 0.98

// facts lists what the typed evidence says, before any text is read.
func facts(e Evidence) []clue {
	var found []clue
	add := func(kind Kind, sure float64, because string) {
		found = append(found, clue{kind: kind, sure: sure, because: because})
	}
	if f, ok := factOfErrno(e); ok {
		add(f.kind, f.sure, "errno "+e.Errno)
	}
	if f, because, ok := factOfEnd(e); ok {
		add(f.kind, f.sure, because)
	}
	if f, ok := factOfStatus(e); ok {
		add(f.kind, f.sure, "HTTP status "+strconv.Itoa(e.HTTPStatus))
	}
	if f, ok := factOfCode(e); ok {
		add(f.kind, f.sure, "JSON-RPC code "+strconv.Itoa(e.RPCCode))
	}
	return found
}

// factOfEnd reads the end of the process. Where it says no more than that it
// ended, the last words may say why.
func factOfEnd(e Evidence) (f fact, because string, ok bool) {
	if signal := signalOf(e); signal != "" {
		f, ok = signals[signal]
		because = "signal " + signal
	} else if e.Exited {
		f, ok = exitCodes[e.ExitCode]
		because = "exit code " + strconv.Itoa(e.ExitCode)
	} else {
		return fact{}, "", false
	}
	if !ok {
		f = fact{ServerCrashed, 0.55}
	}
	return f, because, true
}

type fact struct {
	kind Kind
	sure float64
}

func factOfErrno(e Evidence) (fact, bool) {
	if e.Moment == AtStart {
		if f, ok := startErrnos[e.Errno]; ok {
			return f, true
		}
	}
	f, ok := errnos[e.Errno]
	return f, ok
}

// startErrnos are system errors of starting a process or making a connection.
// Later the same names speak of other things, such as files.
var startErrnos = map[string]fact{
	"ENOENT":       {CommandNotFound, surely},
	"ENOTDIR":      {CommandNotFound, surely},
	"EISDIR":       {CommandNotFound, surely},
	"EINVAL":       {CommandNotFound, likely}, // Windows: a .cmd file without a shell
	"ENAMETOOLONG": {ConfigInvalid, likely},
	"E2BIG":        {ConfigInvalid, plain},
	"EACCES":       {PermissionDenied, surely},
	"EPERM":        {PermissionDenied, surely},
	"ENOEXEC":      {RuntimeArch, plain},
	"EBADARCH":     {RuntimeArch, surely},
	"ECONNRESET":   {Proxy, 0.4}, // not the end of a connection that worked
}

var errnos = map[string]fact{
	"ECONNREFUSED":  {ConnectionRefused, surely},
	"EHOSTUNREACH":  {ConnectionRefused, plain},
	"EHOSTDOWN":     {ConnectionRefused, plain},
	"ENETUNREACH":   {ConnectionRefused, plain},
	"ENOTFOUND":     {DNS, surely},
	"EAI_AGAIN":     {DNS, surely},
	"ECONNRESET":    {ConnectionReset, likely},
	"ECONNABORTED":  {ConnectionReset, likely},
	"ETIMEDOUT":     {Timeout, likely},
	"EPIPE":         {ServerCrashed, hint},
	"EADDRINUSE":    {PortInUse, surely},
	"EADDRNOTAVAIL": {ConfigInvalid, likely},
	"EACCES":        {PermissionDenied, plain},
	"EPERM":         {PermissionDenied, plain},
	"ENOSPC":        {Disk, surely},
	"EDQUOT":        {Disk, surely},
	"EROFS":         {Disk, surely},
	"EBUSY":         {ResourceLocked, likely},
	"EILSEQ":        {Encoding, plain},
	"EMSGSIZE":      {MessageTooLarge, likely},
}

// signalOf names the signal that ended the process, from either way of writing
// it or from the exit code a shell makes of it.
func signalOf(e Evidence) string {
	switch e.Signal {
	case "":
	case "killed":
		return "SIGKILL"
	case "segmentation fault":
		return "SIGSEGV"
	case "aborted":
		return "SIGABRT"
	case "bus error":
		return "SIGBUS"
	case "illegal instruction":
		return "SIGILL"
	case "terminated":
		return "SIGTERM"
	default:
		return clip(printable(e.Signal), 32)
	}
	if !e.Exited {
		return ""
	}
	switch e.ExitCode {
	case 132:
		return "SIGILL"
	case 134:
		return "SIGABRT"
	case 137:
		return "SIGKILL"
	case 139:
		return "SIGSEGV"
	case 143:
		return "SIGTERM"
	}
	return ""
}

var signals = map[string]fact{
	"SIGKILL": {ServerCrashed, likely}, // the reason may be on stderr
	"SIGSEGV": {ServerCrashed, surely},
	"SIGABRT": {ServerCrashed, likely},
	"SIGBUS":  {ServerCrashed, surely},
	"SIGILL":  {RuntimeArch, hint},
	"SIGTERM": {ServerCrashed, hint},
}

var exitCodes = map[int]fact{
	126:        {PermissionDenied, hint},  // found, cannot be run
	127:        {CommandNotFound, likely}, // the shell's word
	9009:       {CommandNotFound, likely}, // that of cmd.exe
	3221225477: {ServerCrashed, plain},    // Windows: access violation
	3221225781: {MissingDependency, plain},
	3221225786: {ServerCrashed, hint}, // Windows: Ctrl-C
}

func factOfStatus(e Evidence) (fact, bool) {
	if e.HTTPStatus == 404 {
		switch {
		case e.HadSession:
			return fact{SessionExpired, plain}, true
		case e.Moment == AtStart || e.Moment == AtHandshake:
			return fact{WrongEndpoint, hint}, true
		}
	}
	if e.HTTPStatus == 503 && e.RetryAfter > 0 {
		return fact{RateLimited, hint}, true
	}
	f, ok := statuses[e.HTTPStatus]
	return f, ok
}

// statuses leaves out 400 and 500, which servers use for everything. Those that
// some servers use for a lost session stay below what a plain text says.
var statuses = map[int]fact{
	401: {AuthFailed, likely},
	403: {AuthFailed, likely},
	405: {TransportMismatch, likely},
	406: {TransportMismatch, plain},
	407: {Proxy, surely},
	408: {Timeout, hint},
	413: {MessageTooLarge, surely},
	415: {TransportMismatch, likely},
	421: {HostHeaderRejected, plain},
	429: {RateLimited, surely},
	502: {ConnectionRefused, hint},
	503: {ConnectionRefused, hint},
	504: {Timeout, likely},
	524: {Timeout, likely},
}

// factOfCode reads the code of an answer. The only method before a server has
// introduced itself is the introduction, and one that does not know it speaks
// something else than we do.
func factOfCode(e Evidence) (fact, bool) {
	if e.RPCCode == -32601 && e.Moment == AtHandshake {
		return fact{ProtocolVersion, surely}, true
	}
	f, ok := rpcCodes[e.RPCCode]
	return f, ok
}

// rpcCodes leaves out -32000 to -32019 and -32603, which mean what each
// implementation likes them to mean.
var rpcCodes = map[int]fact{
	-32601: {MethodNotFound, likely},
	-32602: {InvalidArguments, hint},
	-32022: {ProtocolVersion, surely},
	408:    {Timeout, likely}, // the Python SDK's own
}
