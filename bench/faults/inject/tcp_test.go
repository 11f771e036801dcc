package inject

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ask sends one call through the proxy on a connection of its own and returns
// what came back, to the last byte.
func ask(t *testing.T, p *Proxy, op string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"op_id":"` + op + `"}`
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	got, err := io.ReadAll(c)
	return string(got), err
}

func serve(t *testing.T, rules ...Rule) (*Proxy, *int) {
	t.Helper()
	served := new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*served++
		io.WriteString(w, strings.Repeat("x", 100))
	}))
	t.Cleanup(s.Close)
	p, err := NewProxy(s.Listener.Addr().String(), rules)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p, served
}

func TestBreaksAtTheByteItWasTold(t *testing.T) {
	for _, after := range []int{0, 1, 40} {
		p, served := serve(t, Rule{Op: 3, After: after, Do: Close})
		got, _ := ask(t, p, "T.0.3")
		if len(got) != after || *served != 1 {
			t.Errorf("after %d: got %d bytes, served %d times", after, len(got), *served)
		}
		if s := p.Strikes(); len(s) != 1 || s[0].Op != "T.0.3" {
			t.Errorf("after %d: strikes %v", after, s)
		}
	}
}

func TestResetsRatherThanCloses(t *testing.T) {
	p, _ := serve(t, Rule{Op: 3, After: 0, Do: Reset})
	if _, err := ask(t, p, "T.0.3"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestARequestBrokenBeforeItIsPassedOnNeverArrives(t *testing.T) {
	p, served := serve(t, Rule{Op: 3, Request: true, Do: Close})
	ask(t, p, "T.0.3")
	if *served != 0 {
		t.Errorf("served %d times", *served)
	}
}

func TestLeavesOthersAloneAndStrikesEachOnce(t *testing.T) {
	p, served := serve(t, Rule{Op: -1, Every: 4, Times: -1, Do: Close})
	for _, c := range []struct {
		op   string
		want bool
	}{{"T.0.2", true}, {"T.0.3", false}, {"T.0.3", true}, {"T.0.7", false}, {"T.0.8", true}} {
		got, _ := ask(t, p, c.op)
		if whole := strings.HasPrefix(got, "HTTP/1.1 200"); whole != c.want {
			t.Errorf("%s: whole answer %v, want %v", c.op, whole, c.want)
		}
	}
	if *served != 5 {
		t.Errorf("served %d times, want 5", *served)
	}
}
