package upstream

import (
	"github.com/mcpmend/mcpmend/internal/wire"
)

// modernMeta is what a modern request says about its client, taken from what a
// legacy client said once in its initialize. hello may be nil.
func modernMeta(hello []byte) []byte {
	meta := wire.Set(nil, wire.AppendString(nil, wire.ModernVersion), wire.MetaVersion)
	capabilities, ok := wire.Member(hello, "capabilities")
	if !ok || capabilities[0] != '{' {
		capabilities = []byte("{}")
	}
	meta = wire.Set(meta, capabilities, wire.MetaCapabilities)
	info, ok := wire.Member(hello, "clientInfo")
	if !ok {
		info = []byte(`{"name":"mcpmend","version":"0"}`)
	}
	return wire.Set(meta, info, wire.MetaClientInfo)
}

// modernParams adds the members of meta to the _meta of params.
func modernParams(params, meta []byte) []byte {
	wire.EachMember(meta, func(key string, value []byte) {
		params = wire.Set(params, value, "_meta", key)
	})
	return params
}

// offered reports whether capabilities of a client allow it to be asked this.
func offered(capabilities []byte, method string) bool {
	name := ""
	switch method {
	case "elicitation/create":
		name = "elicitation"
	case "sampling/createMessage":
		name = "sampling"
	case "roots/list":
		name = "roots"
	default:
		return false
	}
	_, ok := wire.Member(capabilities, name)
	return ok
}
