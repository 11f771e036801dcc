package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpmend/mcpmend/internal/wire"
)

// ErrNoSampling: the client does not lend its model.
var ErrNoSampling = errors.New("the client offers no sampling")

// Sample asks the client's own model, if the client lends it: legacy clients may
// say so when they introduce themselves. It returns the text of the answer.
func (s *Session) Sample(ctx context.Context, prompt string) (string, error) {
	s.mu.Lock()
	_, offered := wire.Member(s.hello, "capabilities", "sampling")
	s.mu.Unlock()
	if s.peer.Era != wire.Legacy || !offered {
		return "", ErrNoSampling
	}
	got := make(chan wire.Message, 1)
	id := s.file(question{answer: func(m wire.Message) { got <- m }})
	params := fmt.Appendf(nil, `{"maxTokens":1024,"messages":[{"role":"user","content":{"type":"text","text":%s}}]}`, wire.AppendString(nil, prompt))
	s.peer.Message(wire.NewRequest(id, "sampling/createMessage", params))
	select {
	case m := <-got:
		text, ok := wire.Member(m.Result(), "content", "text")
		if !ok {
			return "", errors.New("the client's model gave no text")
		}
		words, _ := wire.StringValue(text)
		return words, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-s.stop:
		return "", ErrEnded
	}
}
