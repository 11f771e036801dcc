package upstream

import "github.com/mcpmend/mcpmend/internal/wire"

// uplift is the dialect for a legacy client on a modern server.
type uplift struct {
	session *Session
	link    link
	about   []byte // the server's description of itself
}

func (s *Session) uplift(l link, o Outcome) *uplift {
	if o.Fault != nil || o.Reply.Result() == nil {
		return nil
	}
	return &uplift{session: s, link: l, about: o.Reply.Result()}
}

func (u *uplift) introduction() []byte { return []byte("{}") }

func (u *uplift) call(c *Call)        { u.session.launch(u.link, c, c.Msg, nil) }
func (u *uplift) send(m wire.Message) {}
func (u *uplift) attend()             {}
func (u *uplift) usable() bool        { return u.link.trouble() == nil }
func (u *uplift) close()              {}
