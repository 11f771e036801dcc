package advisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpmend/mcpmend/fault"
)

// client is an MCP client whose model is asked through sampling, in the place of
// a network that synctest cannot see.
type client struct {
	t     *testing.T
	takes time.Duration
	says  string
	err   error
	asked int
	mu    sync.Mutex
}

func (c *client) sample(ctx context.Context, prompt string) (string, error) {
	c.mu.Lock()
	c.asked++
	takes, says, err := c.takes, c.says, c.err
	c.mu.Unlock()
	select {
	case <-time.After(takes):
		return says, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *client) advisor(o Options) *Advisor {
	c.t.Helper()
	o.Sample = c.sample
	a, err := New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func kindOf(err error) fault.Kind {
	var flt *fault.Fault
	if errors.As(err, &flt) {
		return flt.Kind
	}
	return ""
}

const yes = `{"arguments":` + open + `}`

func TestSamplingGetsTheRulesAndTheData(t *testing.T) {
	var prompt string
	a, err := New(Options{Sample: func(_ context.Context, p string) (string, error) { prompt = p; return yes, nil }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Correct(t.Context(), question(opne))
	if err != nil || !got.Corrected {
		t.Fatalf("got %+v, %v", got, err)
	}
	if !strings.Contains(prompt, "never an instruction") || !strings.Contains(prompt, `"opne"`) {
		t.Errorf("prompt:\n%s", prompt)
	}
}

func TestTheWaitIsBoundedByTheTimeoutAndAQuarterOfTheDeadline(t *testing.T) {
	for _, tc := range []struct{ timeout, deadline, want time.Duration }{
		{0, 0, 10 * time.Second},
		{3 * time.Second, 0, 3 * time.Second},
		{0, 8 * time.Second, 2 * time.Second},
		{time.Second, 8 * time.Second, time.Second},
		{0, time.Hour, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &client{t: t, takes: time.Minute, says: yes}
			ctx := t.Context()
			if tc.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.deadline)
				defer cancel()
			}
			start := time.Now()
			_, err := c.advisor(Options{Timeout: tc.timeout}).Correct(ctx, question(opne))
			if took := time.Since(start); took != tc.want || kindOf(err) != fault.Timeout {
				t.Errorf("%+v: took %v, %v", tc, took, err)
			}
		})
	}
}

func TestAModelThatIgnoresItsDeadlineDoesNotHoldUpTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{Sample: func(context.Context, string) (string, error) {
			time.Sleep(time.Hour) // in the bubble: a client that never looks at its context
			return yes, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range tolerated {
			start := time.Now()
			if _, err := a.Correct(t.Context(), question(opne)); kindOf(err) != fault.Timeout {
				t.Errorf("got %v, want a timeout", err)
			}
			if took := time.Since(start); took != maxTimeout {
				t.Errorf("took %v", took)
			}
		}
		if _, err := a.Correct(t.Context(), question(opne)); !errors.Is(err, ErrNotAsked) {
			t.Errorf("got %v, want it left alone", err)
		}
		time.Sleep(2 * time.Hour) // until the last one has come back, to nobody
	})
}

func TestTheSameQuestionIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t, takes: time.Second, says: yes}
		a := c.advisor(Options{})
		// The first to ask goes away; the others still get their answer. Each judges
		// it by its own rules.
		first, leave := context.WithCancel(t.Context())
		var done sync.WaitGroup
		outcomes := make([]error, 10)
		for i := range outcomes {
			done.Go(func() {
				ctx, q := t.Context(), question(opne)
				switch i {
				case 0:
					ctx = first
				case 1:
					q.Valid = func([]byte) error { return errors.New("not for me") }
				}
				_, outcomes[i] = a.Correct(ctx, q)
			})
			synctest.Wait()
		}
		leave()
		done.Wait()
		for i, err := range outcomes {
			want := error(nil)
			switch i {
			case 0:
				want = context.Canceled
			case 1:
				want = ErrRejected
			}
			if !errors.Is(err, want) {
				t.Errorf("caller %d: got %v, want %v", i, err, want)
			}
		}
		if c.asked != 1 {
			t.Errorf("asked %d times, want 1", c.asked)
		}
		other := question(opne)
		other.Tool = "other"
		if _, err := a.Correct(t.Context(), other); err != nil || c.asked != 2 {
			t.Errorf("another question: %v, asked %d times", err, c.asked)
		}
	})
}

func TestAQuestionNobodyWaitsForIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t, takes: 5 * time.Second, says: yes}
		a := c.advisor(Options{})
		for range 2 * tolerated {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := a.Correct(ctx, question(opne)); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want it cancelled", err)
			}
		}
		// And it says nothing against the model.
		if _, err := a.Correct(t.Context(), question(opne)); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheBudgetOfAnHourIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t, says: yes}
		a := c.advisor(Options{MaxPerHour: 3})
		ask := func() error {
			_, err := a.Correct(t.Context(), question(opne))
			return err
		}
		for i := range 3 {
			if err := ask(); err != nil {
				t.Fatalf("question %d: %v", i, err)
			}
			time.Sleep(10 * time.Minute)
		}
		if err := ask(); !errors.Is(err, ErrNotAsked) {
			t.Errorf("the fourth: got %v, want ErrNotAsked", err)
		}
		time.Sleep(30 * time.Minute) // an hour after the first
		if err := ask(); err != nil {
			t.Errorf("after the hour: %v", err)
		}
		if err := ask(); !errors.Is(err, ErrNotAsked) || c.asked != 4 {
			t.Errorf("got %v after %d questions, want ErrNotAsked", err, c.asked)
		}
	})
}

func TestAfterThreeFailuresTheModelIsLeftAloneForAMinute(t *testing.T) {
	for name, bad := range map[string]*client{
		"error":   {err: errors.New("sampling failed with key sk-canary0123456789")},
		"slow":    {takes: time.Hour},
		"garbage": {says: "hm"},
		"huge":    {says: strings.Repeat("{", maxReply+1)},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &client{t: t, takes: bad.takes, says: bad.says, err: bad.err}
			a := c.advisor(Options{MaxPerHour: 1000})
			ask := func() error {
				_, err := a.Correct(t.Context(), question(opne))
				return err
			}
			for range tolerated {
				if err := ask(); err == nil || errors.Is(err, ErrNotAsked) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%s: got %v, want a failure", name, err)
				}
			}
			time.Sleep(pause - time.Millisecond)
			if err := ask(); !errors.Is(err, ErrNotAsked) || c.asked != tolerated {
				t.Errorf("%s: got %v after %d questions, want ErrNotAsked", name, err, c.asked)
			}
			time.Sleep(time.Millisecond)
			if err := ask(); errors.Is(err, ErrNotAsked) { // one finds out
				t.Errorf("%s: got %v, want it asked again", name, err)
			}
			if err := ask(); !errors.Is(err, ErrNotAsked) { // and it was in vain
				t.Errorf("%s: got %v, want ErrNotAsked", name, err)
			}
			time.Sleep(pause)
			c.takes, c.says, c.err = 0, yes, nil
			for range 2 * tolerated {
				if err := ask(); err != nil {
					t.Errorf("%s: when it is back: %v", name, err)
				}
			}
		})
	}
}

func TestOneQuestionFindsOutWhetherTheModelIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t, takes: time.Hour}
		a := c.advisor(Options{})
		for range tolerated {
			if _, err := a.Correct(t.Context(), question(opne)); kindOf(err) != fault.Timeout {
				t.Fatalf("got %v, want a timeout", err)
			}
		}
		time.Sleep(pause)
		var done sync.WaitGroup
		for i := range 5 {
			done.Go(func() {
				q := question(opne)
				q.Tool = fmt.Sprint(i)
				_, _ = a.Correct(t.Context(), q)
			})
		}
		done.Wait()
		if c.asked != tolerated+1 {
			t.Errorf("%d of 5 callers had to wait for a model that is not there, want 1", c.asked-tolerated)
		}
	})
}

func TestADeclinedOrRejectedAnswerIsNoFailureOfTheModel(t *testing.T) {
	for _, says := range []string{`{"corrected":false}`, `{"tool":"rm","arguments":{}}`, `{"arguments":{}}`} {
		synctest.Test(t, func(t *testing.T) {
			c := &client{t: t, says: says}
			a := c.advisor(Options{})
			for range 2 * tolerated {
				if _, err := a.Correct(t.Context(), question(opne)); errors.Is(err, ErrNotAsked) {
					t.Errorf("%s: %v", says, err)
				}
			}
		})
	}
}

func TestAServiceThatAsksForTimeGetsIt(t *testing.T) {
	m := newModel(t, "")
	m.raw = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	a := m.advisor(Options{})
	if _, err := a.Correct(t.Context(), question(opne)); kindOf(err) != fault.RateLimited {
		t.Errorf("got %v, want rate_limited", err)
	}
	_, err := a.Correct(t.Context(), question(opne))
	if !errors.Is(err, ErrNotAsked) || len(m.seen()) != 1 || !strings.Contains(fmt.Sprint(err), "5m") && !strings.Contains(fmt.Sprint(err), "4m59") {
		t.Errorf("got %v after %d requests, want it left alone for 5 minutes", err, len(m.seen()))
	}
}
