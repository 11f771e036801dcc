package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// connectionRefused never looks for a port by trying: another program may listen
// there. A published port is known from the compose file, and 127.0.0.1 is the same
// machine as localhost.
func connectionRefused(ctx context.Context, t *treatment) []Fix {
	host, port := t.f.pieces.Host, t.f.pieces.Port
	if port == 0 {
		return []Fix{never("start_server", "", "start the program that should listen there, and check host and port")}
	}
	address := net.JoinHostPort(cmp.Or(host, "localhost"), strconv.Itoa(port))
	start := never("start_server", "", "start the program that should listen at %s", address)
	if t.server == nil {
		return []Fix{start}
	}
	var fixes []Fix
	if isLocal(host) && t.answers != nil && host != "127.0.0.1" && t.answers(ctx, "127.0.0.1", port) {
		edits := t.replaceHost("localhost", "127.0.0.1", port)
		if len(edits) > 0 {
			fixes = append(fixes, t.fix("localhost_ipv4", Auto, "write 127.0.0.1 for localhost, since nobody listens at ::1", edits...)...)
		}
	}
	var ports machine.Ports
	if t.ports != nil && isLocal(host) {
		ports = t.ports(ctx)
	}
	if i := slices.IndexFunc(ports, func(p machine.Published) bool { return p.Published == port }); i >= 0 {
		start.Run = t.typed("docker compose up -d", ports[i].Service)
	}
	if p, ok := ports.Match(port); ok {
		does := fmt.Sprintf("use port %d, where docker compose publishes port %d of %s", p.Published, port, p.Service)
		if p.File != "" {
			does += fmt.Sprintf(" (%s)", Place{File: p.File, Line: p.Line})
		}
		if edits := t.replacePort(port, p.Published); len(edits) > 0 {
			fixes = append(fixes, t.fix("compose_port", Ask, does, edits...)...)
		}
		start.Run = t.typed("docker compose up -d", p.Service)
	}
	return or(fixes, start)
}

func isLocal(host string) bool {
	return slices.Contains([]string{"", "localhost", "::1", "127.0.0.1", "0.0.0.0"}, strings.Trim(host, "[]"))
}

// replaceHost writes another host where a host stands before a port.
func (t *treatment) replaceHost(from, to string, port int) []Edit {
	re := regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(from) + `(:` + strconv.Itoa(port) + `)(\D|$)`)
	return t.replaceAll(func(p part) string { return re.ReplaceAllString(p.Text, "${1}"+to+"${2}${3}") })
}

// replacePort writes another port: behind a host of this machine, and in a value
// that is nothing but the port and is called so.
func (t *treatment) replacePort(from, to int) []Edit {
	old, now := strconv.Itoa(from), strconv.Itoa(to)
	re := regexp.MustCompile(`(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):` + old + `(\D|$)`)
	before := ""
	return t.replaceAll(func(p part) string {
		isPort := strings.Contains(strings.ToUpper(p.name), "PORT") || p.kind == "args" && strings.Contains(before, "port")
		before = p.Text
		if p.Text == old && isPort {
			return now
		}
		return re.ReplaceAllString(p.Text, "${1}:"+now+"${2}")
	})
}

// replaceAll edits every value of the entry that comes out differently. The
// program itself is left alone.
func (t *treatment) replaceAll(with func(part) string) []Edit {
	var edits []Edit
	for _, p := range parts(t.server) {
		if text := with(p); text != p.Text && p.kind != "command" && p.kind != "cwd" {
			edits = append(edits, t.setValue(p.Value, text))
		}
	}
	return edits
}

// transportMismatch names the transport that the server speaks.
func transportMismatch(ctx context.Context, t *treatment) []Fix {
	byHand := never("by_hand", "", "ask the server's documentation which transport it speaks at this address")
	if t.server == nil {
		return []Fix{byHand}
	}
	if t.server.URL.Path == nil {
		if fixes := t.stdioFlag(); fixes != nil {
			return or(fixes, byHand)
		}
		return []Fix{never("by_hand", "", "start the server so that it speaks on standard input and output, as its documentation says")}
	}
	var fixes []Fix
	for _, transport := range t.transports(ctx) {
		if transport != t.server.Transport {
			fixes = append(fixes, t.setTransport(transport)...)
		}
	}
	return or(fixes, byHand)
}

// stdioFlag has the server speak on standard input and output, if it says itself
// which flag does that.
func (t *treatment) stdioFlag() []Fix {
	flag := fault.RemedyIn(t.evidence()).Flag
	if t.server == nil || t.server.Command.Path == nil || !strings.Contains(flag, "stdio") || slices.Contains(argvOf(t.server), flag) {
		return nil
	}
	words := append(argvOf(t.server), strings.Fields(flag)...)
	return t.fix("set_transport", Auto, fmt.Sprintf("add %s, which the server itself asks for", flag), t.setLine(words...))
}

// setTransport changes the type, or the name of the field with the URL where that
// says it.
func (t *treatment) setTransport(transport clientconfig.Transport) []Fix {
	e := &t.client.Entry
	for _, u := range e.URLs {
		if u.Transport == transport && u.Name != t.server.URL.Path[len(t.server.URL.Path)-1] {
			edits := []Edit{t.rename(t.server.URL.Path, u.Name)}
			if t.server.Type.Path != nil && len(e.Types[transport]) > 0 {
				edits = append(edits, t.setValue(t.server.Type, e.Types[transport][0]))
			}
			return t.fix("set_transport", Auto, fmt.Sprintf("write the URL as %q, since the server speaks %s", u.Name, transportName(transport)), edits...)
		}
	}
	names := e.Types[transport]
	if e.Type == "" || len(names) == 0 {
		return nil
	}
	edit := t.editServer(under(t.server.Path, e.Type), func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if s.Type.Text != t.server.Type.Text || s.URL.Text != t.server.URL.Text {
			return nil, errOtherNow
		}
		return f.Set(under(s.Path, e.Type), names[0])
	})
	return t.fix("set_transport", Auto, fmt.Sprintf("write %q: %q, since the server speaks %s", e.Type, names[0], transportName(transport)), edit)
}

func untrusted(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "give the server your organisation's certificate with NODE_EXTRA_CA_CERTS or SSL_CERT_FILE; do not switch the check off")}
}
