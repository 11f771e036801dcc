package front

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// admit checks who is asking, before anything else of the request is looked at.
//
// A page in the user's browser can reach a server on loopback: by a name that it
// makes point there, or simply by sending a request. Neither can be told from a
// real client by its address, but the browser puts the name into Host and the
// page into Origin, and the page can change neither.
func (h *HTTP) admit(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !h.knowsHost(r):
		refuse(w, http.StatusForbidden, "this host name is not served here")
	case !h.knowsOrigin(r):
		refuse(w, http.StatusForbidden, "this origin may not call this server")
	case !h.knowsToken(r):
		challenge := "Bearer"
		if r.Header.Get("Authorization") != "" {
			challenge = `Bearer error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		refuse(w, http.StatusUnauthorized, "a bearer token is required")
	default:
		return true
	}
	return false
}

func (h *HTTP) knowsHost(r *http.Request) bool {
	name := hostname(r.Host)
	if isLoopback(name) || isOwnAddress(r, name) {
		return true
	}
	return slices.ContainsFunc(h.AllowedHosts, func(allowed string) bool {
		return strings.EqualFold(allowed, r.Host) || strings.EqualFold(allowed, name)
	})
}

// isOwnAddress reports whether the host is the address the client connected to.
// No page can make a browser send that under a foreign name.
func isOwnAddress(r *http.Request, name string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap() == local.AddrPort().Addr().Unmap()
}

func (h *HTTP) knowsOrigin(r *http.Request) bool {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return false
	}
	if slices.ContainsFunc(h.AllowedOrigins, func(allowed string) bool {
		return strings.EqualFold(allowed, values[0])
	}) {
		return true
	}
	origin, err := url.Parse(values[0])
	return err == nil && (origin.Scheme == "http" || origin.Scheme == "https") && isLoopback(origin.Hostname())
}

func (h *HTTP) knowsToken(r *http.Request) bool {
	if h.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") &&
		subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(h.Token)) == 1
}

// hostname is host without its port and without the brackets of IPv6.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
