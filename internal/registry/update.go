package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	pageSize    = 100      // more is refused by the official registry
	maxPages    = 2000     // the official one has some hundred
	maxPage     = 16 << 20 // bytes
	maxAttempts = 3        // for one page
	updateLimit = 5 * time.Minute
	pageLimit   = 30 * time.Second
	// longestWait is how long we come back later if the registry asks for that. Who
	// asks for more is not asked again: sooner would be rude, and somebody waits.
	longestWait = time.Minute
	// Changes are looked at again from a little before the newest one we have seen:
	// they need not become visible in the order of their times.
	overlap = time.Hour
)

// Update reads what is new in the registry and rewrites the index. The first time
// that is everything, some hundred requests; the registry asks to be read at most
// once an hour. If anything fails the index stays as it was.
func (r *Registry) Update(ctx context.Context) error {
	if r.Dir == "" {
		return errors.New("registry: no folder to keep an index in")
	}
	list, err := listURL(r.base())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()

	next := &index{head: header{Format: indexFormat, Base: r.base(), Checked: time.Now().UTC()}}
	lines := make(map[string][]byte)
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "version": {"latest"}}
	if old, err := readIndex(r.Dir, r.base()); err == nil && !old.head.Newest.IsZero() {
		next.head.Newest = old.head.Newest
		lines = old.names()
		query.Set("updated_since", old.head.Newest.Add(-overlap).UTC().Format(time.RFC3339))
	}
	if err := r.crawl(ctx, list, query, lines, &next.head); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	var rows bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		rows.Write(lines[name])
	}
	next.rows = rows.Bytes()
	next.head.Size = len(next.rows)
	if err := next.write(r.Dir); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	r.mu.Lock()
	r.index = next
	r.mu.Unlock()
	return nil
}

func (r *Registry) base() string {
	if r.BaseURL == "" {
		return Official
	}
	return strings.TrimRight(r.BaseURL, "/")
}

func listURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		// Not quoted: it may hold a password.
		return nil, errors.New("registry: the base URL is not an http or https address")
	}
	if !strings.HasSuffix(u.Path, "/servers") {
		u = u.JoinPath("v0.1", "servers")
	}
	return u, nil
}

// crawl follows the pages and notes every server in lines, by name.
func (r *Registry) crawl(ctx context.Context, list *url.URL, query url.Values, lines map[string][]byte, head *header) error {
	seen := make(map[string]bool)
	updated := make(map[string]time.Time) // in this crawl
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	for range maxPages {
		page, err := r.page(ctx, list, query)
		if err != nil {
			return err
		}
		for _, raw := range page.Servers {
			var l listed
			if json.Unmarshal(raw, &l) != nil {
				continue // one publisher's nonsense is no reason to lose the others
			}
			if o := l.Meta.Official; o != nil && o.UpdatedAt.After(head.Newest) {
				head.Newest = o.UpdatedAt
			}
			e, ok := l.entry()
			if before, twice := updated[e.Name]; e.Name == "" || twice && e.Updated.Before(before) {
				continue
			}
			updated[e.Name] = e.Updated
			if !ok {
				size -= len(lines[e.Name])
				delete(lines, e.Name)
				continue
			}
			line, err := encode(e)
			if err != nil {
				continue
			}
			size += len(line) - len(lines[e.Name])
			lines[e.Name] = line
		}
		if size > maxIndex-1<<10 {
			return errors.New("the list is larger than we keep")
		}
		cursor := page.Metadata.NextCursor
		if cursor == "" {
			return nil
		}
		if seen[cursor] {
			return errors.New("the list goes in circles")
		}
		seen[cursor] = true
		query.Set("cursor", cursor)
	}
	return errors.New("the list has no end")
}

func encode(e Entry) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(row{Keys: e.keys(), Entry: e})
	return b.Bytes(), err
}

// page reads one page, again after a pause if the registry is only busy.
func (r *Registry) page(ctx context.Context, list *url.URL, query url.Values) (*listing, error) {
	pause := r.pause
	if pause == 0 {
		pause = time.Second
	}
	var errs []error
	for attempt := 1; ; attempt++ {
		page, again, after, err := r.try(ctx, list, query)
		if err == nil {
			return page, nil
		}
		errs = append(errs, err)
		if !again || attempt == maxAttempts || ctx.Err() != nil {
			return nil, errors.Join(errs...)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(append(errs, ctx.Err())...)
		case <-time.After(max(pause, after)):
		}
		pause *= 4
	}
}

// try asks for a page once. After an error, again says whether another time could
// help, and after when the registry wants it at the earliest.
func (r *Registry) try(ctx context.Context, list *url.URL, query url.Values) (_ *listing, again bool, after time.Duration, _ error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	u := *list
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, false, 0, errors.New("the base URL cannot be used")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mcpmend")
	resp, err := r.client().Do(req)
	if err != nil {
		// An *url.Error quotes the URL, which is the user's.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, true, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		again := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		err := fmt.Errorf("the registry answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		after := retryAfter(resp.Header.Get("Retry-After"))
		if again && after > longestWait {
			again, err = false, fmt.Errorf("%w and asks to be left alone for %v", err, after.Round(time.Second))
		}
		return nil, again, after, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, true, 0, err
	}
	if len(body) > maxPage {
		return nil, false, 0, fmt.Errorf("a page is larger than %d MiB", maxPage>>20)
	}
	var page listing
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, false, 0, errors.New("the answer is not a list of servers")
	}
	if page.Servers == nil && !bytes.Contains(body, []byte(`"servers"`)) {
		return nil, false, 0, errors.New("the answer is not a list of servers")
	}
	return &page, false, 0, nil
}

// retryAfter reads the header of that name: seconds, or a date. 0 if it says nothing.
func retryAfter(text string) time.Duration {
	const longest = 24 * time.Hour // more is no more; and multiplied it might be less
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), longest)
	}
	return 0
}

// client is the user's, or one that does not leave https for http.
func (r *Registry) client() *http.Client {
	if r.Client != nil {
		return r.Client
	}
	return &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 5:
			return errors.New("too many redirects")
		case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("a redirect away from https")
		}
		return nil
	}}
}
