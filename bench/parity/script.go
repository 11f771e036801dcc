package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// A script is one client's side of a conversation. It is played once in each way,
// and what the client got to see is compared.
type script func(context.Context, *player)

// An exchange is one call and all the client received for it.
type exchange struct {
	name  string
	reply []byte
	seen  [][]byte // notifications, and requests from the server without their ids
}

// player plays a script on one connection and writes down what happens.
type player struct {
	client   *raw.Client
	expected []exchange // of the direct play, or nil if this is it
	played   []exchange
}

// play connects, plays and returns what happened.
func play(ctx context.Context, w way, s script, expected []exchange) ([]exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	client, err := w.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	client.Answer = answer
	p := &player{client: client, expected: expected}
	s(ctx, p)
	if err := client.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return p.played, nil
}

// answer is the fixed answer to requests from a server.
func answer(method string, _ []byte) string {
	return map[string]string{
		"roots/list":             `{"roots":[{"uri":"file:///caf\u00e9","name":"one","vendorRoot":9007199254740993}]}`,
		"sampling/createMessage": `{"role":"assistant","model":"fixed","stopReason":"endTurn","content":{"type":"text","text":"caf\u00e9 <b>"},"vendorAnswer":1.0}`,
		"elicitation/create":     `{"action":"accept","content":{"name":"Ada","check":true,"n":9007199254740993},"vendorAnswer":[1.0]}`,
		"vendor/request":         `{"vendor":{"big":9007199254740993,"one":1.0}}`,
	}[method]
}

// noReply begins what is noted instead of a reply that did not come.
const noReply = "no reply: "

// call makes one call and notes the exchange. What matches one of the masks is
// left out: the few places where a server tells the time or rolls dice.
func (p *player) call(ctx context.Context, name, id, method, params string, masks ...*regexp.Regexp) []byte {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := p.client.Call(ctx, id, method, params)
	if err != nil {
		reply = []byte(noReply + err.Error())
	}
	got := exchange{name: name, reply: mask(reply, masks)}
	for _, m := range p.arrived(ctx) {
		got.seen = append(got.seen, mask(withoutRequestID(m), masks))
	}
	p.played = append(p.played, got)
	return reply
}

// notify sends a notification.
func (p *player) notify(method, params string) { p.client.Notify(method, params) }

// arrived returns what came besides the reply. Some of it may travel on another
// stream than the reply and come later, so as many messages are awaited
// as there were directly.
func (p *player) arrived(ctx context.Context) [][]byte {
	seen := p.client.Seen()
	if len(p.played) >= len(p.expected) {
		return seen
	}
	want := len(p.expected[len(p.played)].seen)
	for deadline := time.Now().Add(2 * time.Second); len(seen) < want && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return seen
		case <-time.After(2 * time.Millisecond):
			seen = append(seen, p.client.Seen()...)
		}
	}
	return seen
}

func mask(text []byte, masks []*regexp.Regexp) []byte {
	for _, m := range masks {
		text = m.ReplaceAll(text, []byte("*"))
	}
	return text
}

// requestID is the id of a request from the server, which a layer that serves
// several clients has to replace.
var requestID = regexp.MustCompile(`"id":(?:-?[0-9]+|"(?:[^"\\]|\\.)*")`)

func withoutRequestID(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"method":`)) {
		return message
	}
	at := requestID.FindIndex(message)
	if at == nil {
		return message
	}
	return slices.Concat(message[:at[0]], []byte(`"id":*`), message[at[1]:])
}

// compare names the exchanges that differ.
func compare(direct, through []exchange, ordered bool) (wrong []string) {
	if len(direct) != len(through) {
		wrong = append(wrong, fmt.Sprintf("%d exchanges directly, %d through", len(direct), len(through)))
	}
	for i := range min(len(direct), len(through)) {
		d, t := direct[i], through[i]
		if text := differ(d.reply, t.reply); text != "" {
			wrong = append(wrong, d.name+": "+text)
		}
		if !ordered {
			slices.SortFunc(d.seen, bytes.Compare)
			slices.SortFunc(t.seen, bytes.Compare)
		}
		seen := [2][]byte{bytes.Join(d.seen, []byte("\n")), bytes.Join(t.seen, []byte("\n"))}
		if text := differ(seen[0], seen[1]); text != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %d other messages directly, %d through: %s", d.name, len(d.seen), len(t.seen), text))
		}
	}
	return wrong
}

// differ describes the first difference of two messages, or returns "".
func differ(direct, through []byte) string {
	if bytes.Equal(direct, through) {
		return ""
	}
	at := 0
	for at < min(len(direct), len(through)) && direct[at] == through[at] {
		at++
	}
	around := func(text []byte) string {
		return fmt.Sprintf("%q", text[max(0, at-40):min(len(text), at+80)])
	}
	return fmt.Sprintf("%d and %d bytes, differ at %d\n  direct  %s\n  through %s",
		len(direct), len(through), at, around(direct), around(through))
}

// playAll plays the script in the direct way and compares each other way with it.
// A second direct play guards against the script itself: what varies between two
// of them would be blamed on mcpmend.
func playAll(ctx context.Context, s script, direct way, through ...way) ([]finding, error) {
	reference, err := play(ctx, direct, s, nil)
	if err != nil {
		return nil, err
	}
	for _, e := range reference {
		if bytes.HasPrefix(e.reply, []byte(noReply)) {
			return nil, fmt.Errorf("%s, %s: %s", direct.name, e.name, e.reply)
		}
	}
	again, err := play(ctx, direct, s, reference)
	if err != nil {
		return nil, err
	}
	control := finding{Way: direct.name + ", twice", Compared: len(again), Wrong: compare(reference, again, direct.ordered)}
	findings := []finding{control}
	for _, w := range through {
		got, err := play(ctx, w, s, reference)
		if err != nil {
			findings = append(findings, finding{Way: w.name, Wrong: []string{err.Error()}})
			continue
		}
		findings = append(findings, finding{Way: w.name, Compared: len(got), Wrong: compare(reference, got, w.ordered && direct.ordered)})
	}
	return findings, nil
}
