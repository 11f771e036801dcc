package upstream

import (
	"net/http"
	"net/url"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

type httpPlace struct {
	url    *url.URL
	client *http.Client
}

func newHTTPPlace(u *url.URL, spec *Spec) *httpPlace {
	return &httpPlace{url: u, client: &http.Client{}}
}

type httpLink struct{}

func (p *httpPlace) dial(hear receiver) *httpLink { return &httpLink{} }

func (l *httpLink) send(f *flight)                        {}
func (l *httpLink) post(wire.Message) error               { return nil }
func (l *httpLink) abandon(f *flight, note *wire.Message) {}
func (l *httpLink) attend()                               {}
func (l *httpLink) close()                                {}
func (l *httpLink) closed() <-chan struct{}               { return nil }
func (l *httpLink) trouble() *fault.Fault                 { return nil }
func (l *httpLink) speak(version string)                  {}
func (l *httpLink) adopt(receiver, bool)                  {}
