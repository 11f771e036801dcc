package front

import (
	"context"
	"net"

	"github.com/mcpmend/mcpmend/internal/catalogue"
)

// HTTP is being written.
type HTTP struct {
	Catalogue *catalogue.Catalogue
	Token     string
}

func (h *HTTP) Serve(ctx context.Context, l net.Listener) error { return nil }
