package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// official is a small registry that speaks as the official one does: API v0.1
// with limit, cursor, version and updated_since.
type official struct {
	mu      sync.Mutex
	servers []published
	asked   []string // the queries
	page    int      // the largest page it gives; 0 is what was asked for
	// instead answers in its place if it returns true.
	instead func(n int, w http.ResponseWriter, r *http.Request) bool
}

type published struct {
	server  string // server.json
	status  string
	message string
	updated time.Time
	old     bool // not the latest version
}

func (o *official) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, r.URL.RawQuery)
	if o.instead != nil && o.instead(len(o.asked), w, r) {
		return
	}
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if r.URL.Path != "/v0.1/servers" || err != nil || limit < 1 || limit > 100 {
		http.Error(w, `{"title":"Unprocessable Entity","status":422}`, http.StatusUnprocessableEntity)
		return
	}
	if o.page > 0 {
		limit = min(limit, o.page)
	}
	var since time.Time
	if s := q.Get("updated_since"); s != "" {
		if since, err = time.Parse(time.RFC3339, s); err != nil {
			http.Error(w, "bad updated_since", http.StatusUnprocessableEntity)
			return
		}
	}
	var rows []string
	for _, p := range o.servers {
		if p.updated.Before(since) || p.old && q.Get("version") == "latest" || p.status == "deleted" && since.IsZero() {
			continue
		}
		status := p.status
		if status == "" {
			status = "active"
		}
		stamp := p.updated.Format(time.RFC3339Nano)
		rows = append(rows, fmt.Sprintf(`{"server":%s,"_meta":{"io.modelcontextprotocol.registry/official":{"status":%q,"statusMessage":%q,"publishedAt":%q,"updatedAt":%q,"isLatest":%v}}}`,
			p.server, status, p.message, stamp, stamp, !p.old))
	}
	start := 0
	if c := q.Get("cursor"); c != "" {
		start, _ = strconv.Atoi(strings.TrimPrefix(c, "after:"))
	}
	end := min(start+limit, len(rows))
	next := ""
	if end < len(rows) {
		next = fmt.Sprintf(`"nextCursor":"after:%d",`, end)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"servers":[%s],"metadata":{%s"count":%d}}`, strings.Join(rows[start:end], ","), next, end-start)
}

func (o *official) queries() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

func start(t *testing.T, o *official) *Registry {
	t.Helper()
	ts := httptest.NewServer(o)
	t.Cleanup(ts.Close)
	return &Registry{BaseURL: ts.URL, Dir: filepath.Join(t.TempDir(), "cache"), pause: time.Millisecond}
}

// offline is the same index, read by a program that has no network.
func offline(r *Registry) *Registry {
	return &Registry{BaseURL: r.BaseURL, Dir: r.Dir, Client: &http.Client{Transport: noNetwork{}}}
}

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	panic("a lookup touched the network")
}

func update(t *testing.T, r *Registry) {
	t.Helper()
	if err := r.Update(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var day = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

const weather = `{
	"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
	"name": "io.github.acme/weather", "title": "Weather", "description": "Forecasts for places",
	"version": "1.2.0", "websiteUrl": "https://acme.example/weather",
	"repository": {"url": "https://github.com/acme/weather", "source": "github"},
	"packages": [
		{"registryType": "npm", "identifier": "@acme/weather", "version": "1.2.0", "runtimeHint": "npx",
		 "transport": {"type": "stdio"},
		 "packageArguments": [{"type": "positional", "valueHint": "place", "isRequired": true, "description": "where"},
			{"type": "named", "name": "--units", "default": "metric", "choices": ["metric", "imperial"]}],
		 "environmentVariables": [
			{"name": "WEATHER_API_KEY", "description": "key", "isRequired": true, "isSecret": true, "default": "sk-never-keep-this"},
			{"name": "WEATHER_LANG", "default": "en", "format": "string", "choices": ["en", "de"]}]},
		{"registryType": "pypi", "identifier": "Acme_Weather.Server", "version": "1.2.0", "transport": {"type": "stdio"}},
		{"registryType": "oci", "identifier": "docker.io/acme/weather:1.2.0", "transport": {"type": "stdio"},
		 "runtimeArguments": [
			{"type": "named", "name": "-i", "value": "true"},
			{"type": "named", "name": "-e", "value": "WEATHER_API_KEY={token}", "isRequired": true,
			 "variables": {"token": {"isRequired": true, "isSecret": true}}}]}],
	"remotes": [
		{"type": "streamable-http", "url": "https://Weather.Acme.example/mcp/", "headers": [{"name": "Authorization", "isRequired": true, "isSecret": true}]},
		{"type": "sse", "url": "https://{tenant}.acme.example/{version}/sse"},
		{"type": "sse", "url": "{baseUrl}/mcp"}]
}`

func TestAPackageIsFoundHoweverItIsWritten(t *testing.T) {
	r := start(t, &official{servers: []published{{server: weather, updated: day}}})
	update(t, r)
	r = offline(r)
	for _, test := range []struct{ kind, id, want string }{
		{"npm", "@acme/weather", "@acme/weather"},
		{"npm", "@acme/weather@latest", "@acme/weather"},
		{"npm", "@Acme/Weather@1.2.0", "@acme/weather"},
		{"npm", "weather", ""},
		{"npm", "@acme/weather-pro", ""},
		{"npm", "@acme/weathe", ""},
		{"npm", "", ""},
		{"pypi", "acme-weather-server", "Acme_Weather.Server"},
		{"pypi", "acme_weather_server==1.2", "Acme_Weather.Server"},
		{"pypi", "acme.weather.server[all]>=1", "Acme_Weather.Server"},
		{"pypi", "acme-weather-server@1.2.0", "Acme_Weather.Server"},
		{"oci", "acme/weather", "docker.io/acme/weather:1.2.0"},
		{"oci", "docker.io/acme/weather:latest", "docker.io/acme/weather:1.2.0"},
		{"oci", "acme/weather@sha256:0000", "docker.io/acme/weather:1.2.0"},
		{"oci", "localhost:5000/acme/weather", ""},
		{"nuget", "@acme/weather", ""},
	} {
		e, ok := r.Package(test.kind, test.id)
		if ok != (test.want != "") {
			t.Errorf("Package(%q, %q) = %q, %v", test.kind, test.id, e.Name, ok)
			continue
		}
		if p, found := e.Find(test.kind, test.id); found != ok || p.Identifier != test.want {
			t.Errorf("Find(%q, %q) = %q, want %q", test.kind, test.id, p.Identifier, test.want)
		}
	}
}

func TestAnEntrySaysWhatTheServerNeeds(t *testing.T) {
	r := start(t, &official{servers: []published{{server: weather, updated: day}}})
	update(t, r)
	got, _ := offline(r).Package("npm", "@acme/weather")
	secret := Variable{Name: "WEATHER_API_KEY", Required: true, Secret: true}
	described := secret
	described.Description = "key"
	want := Entry{
		Name: "io.github.acme/weather", Title: "Weather", Description: "Forecasts for places", Version: "1.2.0",
		Repository: "https://github.com/acme/weather", Website: "https://acme.example/weather", Updated: day,
		Packages: []Package{
			{Type: "npm", Identifier: "@acme/weather", Version: "1.2.0", Runtime: "npx", Transport: "stdio",
				Arguments: []Argument{{Hint: "place", Description: "where", Required: true},
					{Name: "--units", Default: "metric", Choices: []string{"metric", "imperial"}}},
				Variables: []Variable{described, {Name: "WEATHER_LANG", Default: "en", Format: "string", Choices: []string{"en", "de"}}}},
			{Type: "pypi", Identifier: "Acme_Weather.Server", Version: "1.2.0", Transport: "stdio"},
			{Type: "oci", Identifier: "docker.io/acme/weather:1.2.0", Transport: "stdio",
				RuntimeArguments: []Argument{{Name: "-i", Value: "true"}, {Name: "-e", Required: true, Secret: true}},
				Variables:        []Variable{secret}},
		},
		Remotes: []Remote{
			{Type: "streamable-http", URL: "https://Weather.Acme.example/mcp/", Headers: []Variable{{Name: "Authorization", Required: true, Secret: true}}},
			{Type: "sse", URL: "https://{tenant}.acme.example/{version}/sse"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(filepath.Join(r.Dir, indexName))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "never-keep") {
		t.Error("the index keeps the default of a secret")
	}
}

func TestARemoteIsFoundByItsAddress(t *testing.T) {
	r := start(t, &official{servers: []published{{server: weather, updated: day}}})
	update(t, r)
	r = offline(r)
	for url, want := range map[string]bool{
		"https://weather.acme.example/mcp":                 true,
		"https://weather.acme.example:443/mcp/?key=secret": true,
		"HTTPS://user:pw@WEATHER.acme.example/mcp#x":       true,
		"https://weather.acme.example/mcp2":                false,
		"https://weather.acme.example/":                    false,
		"https://tenant7.acme.example/v3/sse":              true,
		"https://tenant7.acme.example/v3/more/sse":         false,
		"https://a.b.acme.example/v3/sse":                  false,
		"https://.acme.example/v3/sse":                     false,
		"https://elsewhere.example/mcp":                    false, // {baseUrl}/mcp is nobody's
		"ftp://weather.acme.example/mcp":                   false,
		"":                                                 false,
	} {
		e, ok := r.Remote(url)
		if ok != want {
			t.Errorf("Remote(%q) = %q, %v, want %v", url, e.Name, ok, want)
		}
		if _, found := e.FindRemote(url); found != want {
			t.Errorf("FindRemote(%q) = %v, want %v", url, found, want)
		}
	}
}

func many(n int) []published {
	var all []published
	for i := range n {
		all = append(all, published{updated: day.Add(time.Duration(i) * time.Hour), server: fmt.Sprintf(
			`{"name":"io.github.acme/s%d","description":"number %d","version":"1.0.0","packages":[{"registryType":"npm","identifier":"s%d","version":"1.0.0","transport":{"type":"stdio"}}]}`, i, i, i)})
	}
	return all
}

func TestEveryPageIsRead(t *testing.T) {
	o := &official{servers: many(250)}
	r := start(t, o)
	update(t, r)
	if got := len(o.queries()); got != 3 {
		t.Errorf("asked %d times: %q", got, o.queries())
	}
	for _, id := range []string{"s0", "s100", "s249"} {
		if _, ok := offline(r).Package("npm", id); !ok {
			t.Errorf("%s is missing", id)
		}
	}
}

func TestTheSecondUpdateAsksOnlyForWhatIsNew(t *testing.T) {
	o := &official{servers: many(250)}
	r := start(t, o)
	update(t, r)
	later := day.Add(999 * time.Hour)
	o.mu.Lock()
	o.servers[7].status, o.servers[7].message, o.servers[7].updated = "deprecated", "use s8", later
	o.servers[9].status, o.servers[9].updated = "deleted", later
	o.servers[11].server, o.servers[11].updated = `{"name":"io.github.acme/s11","version":"2.0.0","packages":[]}`, later
	o.servers = append(o.servers, published{server: weather, updated: later})
	o.asked = nil
	o.mu.Unlock()

	update(t, r)
	if asked := o.queries(); len(asked) != 1 || !strings.Contains(asked[0], "updated_since=2026-10-11T20%3A00") {
		t.Errorf("asked %q", asked)
	}
	r = offline(r)
	if e, ok := r.Package("npm", "s7"); !ok || e.Status != Deprecated || e.StatusMessage != "use s8" {
		t.Errorf("s7 is %+v, %v", e, ok)
	}
	if e, ok := r.Package("npm", "s9"); !ok || e.Status != Deleted {
		t.Errorf("s9 is %+v, %v", e, ok)
	}
	if _, ok := r.Package("npm", "s11"); ok {
		t.Error("a package that its server gave up is still found")
	}
	if _, ok := r.Package("npm", "@acme/weather"); !ok {
		t.Error("what is new was not noted")
	}
	if _, ok := r.Package("npm", "s100"); !ok {
		t.Error("what did not change was lost")
	}
	if found := r.Search("s9", 10); slices.ContainsFunc(found, func(e Entry) bool { return e.Status == Deleted }) {
		t.Errorf("a search finds a deleted server: %+v", found)
	}
}

// Two servers may name the same package; only one of them is still in use.
func TestAnActiveEntryWins(t *testing.T) {
	one := strings.ReplaceAll(weather, "io.github.acme/weather", "io.github.acme/a-newer-but-gone")
	r := start(t, &official{servers: []published{
		{server: one, status: "deprecated", updated: day.Add(time.Hour)},
		{server: weather, updated: day},
	}})
	update(t, r)
	if e, _ := r.Package("npm", "@acme/weather"); e.Name != "io.github.acme/weather" {
		t.Errorf("found %q", e.Name)
	}
}

// A registry that knows no version=latest lists them all.
func TestOldVersionsAreLeftOut(t *testing.T) {
	old := strings.ReplaceAll(weather, `"version": "1.2.0"`, `"version": "0.9.0"`)
	o := &official{servers: []published{{server: weather, updated: day}, {server: old, updated: day.Add(time.Hour), old: true}}}
	o.instead = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		q.Del("version")
		r.URL.RawQuery = q.Encode()
		return false
	}
	r := start(t, o)
	update(t, r)
	if e, _ := r.Package("npm", "@acme/weather"); e.Version != "1.2.0" {
		t.Errorf("found version %q", e.Version)
	}
}

func TestNonsenseOfOnePublisherHidesNobodyElse(t *testing.T) {
	r := start(t, &official{servers: []published{
		{server: `{"name": 7}`, updated: day},
		{server: `{"name":"a/b","packages":"none"}`, updated: day},
		{server: `{"name":"a/evil\u001b[2J","packages":[{"registryType":"npm","identifier":"evil"}]}`, updated: day},
		{server: `{"name":"a/c","packages":[{"registryType":"npm","identifier":"x\u001b]0;"},{"registryType":"","identifier":"x"},{"registryType":"npm","identifier":"ok"}],` +
			`"description":"line\nbreak \u001b[31mred\u202e","websiteUrl":"javascript:alert(1)"}`, updated: day},
		{server: weather, updated: day},
	}})
	update(t, r)
	r = offline(r)
	if _, ok := r.Package("npm", "@acme/weather"); !ok {
		t.Error("the good one is missing")
	}
	if _, ok := r.Package("npm", "evil"); ok {
		t.Error("a name with an escape sequence was taken")
	}
	e, ok := r.Package("npm", "ok")
	if !ok || e.Description != "line break [31mred" || e.Website != "" || len(e.Packages) != 1 {
		t.Errorf("got %+v, %v", e, ok)
	}
}

func TestAFailedUpdateChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		instead func(n int, w http.ResponseWriter, r *http.Request) bool
		want    string
		asked   int
	}{
		"always 500": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}, "500", 3},
		"404": {func(n int, w http.ResponseWriter, r *http.Request) bool {
			http.NotFound(w, r)
			return true
		}, "404", 1},
		"a login page": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, "<!DOCTYPE html>")
			return true
		}, "not a list", 1},
		"another JSON": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, `{"error":"no"}`)
			return true
		}, "not a list", 1},
		"huge": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, `{"servers":[],"x":"`)
			chunk := []byte(strings.Repeat("x", 1<<20))
			for range maxPage>>20 + 1 {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			return true
		}, "larger than", 1},
		"in circles": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, `{"servers":[],"metadata":{"nextCursor":"again"}}`)
			return true
		}, "circles", 2},
		"dies on the second page": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				return false
			}
			panic(http.ErrAbortHandler)
		}, "EOF", 4},
	} {
		t.Run(name, func(t *testing.T) {
			o := &official{servers: []published{{server: weather, updated: day}}}
			r := start(t, o)
			update(t, r)
			path := filepath.Join(r.Dir, indexName)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			o.mu.Lock()
			o.servers, o.page, o.asked, o.instead = many(3), 2, nil, test.instead
			for i := range o.servers {
				o.servers[i].updated = day.Add(time.Hour)
			}
			o.mu.Unlock()
			err = r.Update(context.Background())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			// The transport itself repeats a request whose connection died at once.
			if got := len(o.queries()); got != test.asked && name != "dies on the second page" {
				t.Errorf("asked %d times, want %d", got, test.asked)
			}
			after, err := os.ReadFile(path)
			if err != nil || string(after) != string(before) {
				t.Errorf("the index changed: %v", err)
			}
			if _, ok := r.Package("npm", "@acme/weather"); !ok {
				t.Error("nothing is found any more")
			}
			if left, _ := fs.Glob(os.DirFS(r.Dir), "*"); len(left) != 1 {
				t.Errorf("files left behind: %q", left)
			}
		})
	}
}

func TestABusyRegistryIsAskedAgain(t *testing.T) {
	o := &official{servers: many(2), instead: func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n < 3 {
			http.Error(w, "later", http.StatusTooManyRequests)
		}
		return n < 3
	}}
	r := start(t, o)
	update(t, r)
	if _, ok := r.Package("npm", "s1"); !ok {
		t.Error("not found")
	}
}

// roundTrip answers without a network, whose time would not pass in a bubble.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestABusyRegistryIsAskedAgainWhenItSays(t *testing.T) {
	for _, test := range []struct {
		name  string
		after func(time.Time) string
		want  time.Duration // between the two requests; 0 if there is no second
	}{
		{"seconds", func(time.Time) string { return "20" }, 20 * time.Second},
		{"a date", func(now time.Time) string { return now.Add(30 * time.Second).UTC().Format(http.TimeFormat) }, 30 * time.Second},
		{"less than we wait anyhow", func(time.Time) string { return "0" }, time.Second},
		{"a date that is over", func(now time.Time) string { return now.Add(-time.Hour).UTC().Format(http.TimeFormat) }, time.Second},
		{"nonsense", func(time.Time) string { return "soon" }, time.Second},
		{"too long", func(time.Time) string { return "86400" }, 0},
		{"beyond all numbers", func(time.Time) string { return "99999999999999999999" }, time.Second},
		{"beyond all times", func(time.Time) string { return "9223372036854775807" }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []time.Time
				r := &Registry{BaseURL: "https://registry.example", Dir: t.TempDir(), Client: &http.Client{Transport: roundTrip(func(*http.Request) *http.Response {
					asked = append(asked, time.Now())
					w := httptest.NewRecorder()
					if len(asked) == 1 {
						w.Header().Set("Retry-After", test.after(time.Now()))
						w.WriteHeader(http.StatusTooManyRequests)
					} else {
						fmt.Fprint(w, `{"servers":[]}`)
					}
					return w.Result()
				})}}
				err := r.Update(t.Context())
				if test.want == 0 {
					if len(asked) != 1 || err == nil || !strings.Contains(err.Error(), "asks to be left alone") {
						t.Errorf("asked %d times, %v; want one question and what the registry said", len(asked), err)
					}
					return
				}
				if err != nil || len(asked) != 2 || asked[1].Sub(asked[0]) != test.want {
					t.Errorf("asked at %v, %v; want a second time after %v", asked, err, test.want)
				}
			})
		})
	}
}

func TestUpdateEndsWithItsContext(t *testing.T) {
	arrived := make(chan struct{})
	o := &official{instead: func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		return true
	}}
	r := start(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	if err := r.Update(ctx); err == nil {
		t.Error("no error")
	}
}

func TestWithoutAnIndexTheBuiltInTableAnswers(t *testing.T) {
	for name, r := range map[string]*Registry{
		"zero":      {},
		"no folder": {Dir: filepath.Join(t.TempDir(), "none")},
	} {
		if _, ok := r.Age(); ok {
			t.Errorf("%s: an index that is not there has an age", name)
		}
		e, ok := r.Package("npm", "@notionhq/notion-mcp-server@1.8.1")
		if !ok || !e.BuiltIn || e.Help() != "https://www.notion.so/profile/integrations" {
			t.Errorf("%s: got %+v, %v", name, e, ok)
		}
		if _, ok := r.Package("npm", "nobody-knows-this"); ok {
			t.Errorf("%s: found what is not there", name)
		}
		if e, ok := r.Remote("https://mcp.tavily.com/mcp/?tavilyApiKey=x"); !ok || e.Name != "tavily" {
			t.Errorf("%s: got %+v, %v", name, e, ok)
		}
		if found := r.Search("notion", 5); len(found) == 0 || found[0].Name != "notion" {
			t.Errorf("%s: search found %+v", name, found)
		}
	}
	if err := new(Registry).Update(t.Context()); err == nil {
		t.Error("updated an index that has no place")
	}
}

func TestAFileThatIsNotOursIsNoIndex(t *testing.T) {
	// The one that is looked for is too old to be among what is new.
	o := &official{servers: append(many(50), published{server: weather, updated: day.Add(-999 * time.Hour)})}
	for name, content := range map[string]string{
		"empty":        "",
		"garbage":      "\x00\x01\n{{{\n",
		"other format": `{"mcpmend_registry":99}` + "\n",
		"cut":          "CUT",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, o)
			update(t, r)
			path := filepath.Join(r.Dir, indexName)
			if content == "CUT" {
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(string(whole), "\n")
				content = first + "\n"
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, ok := offline(r).Package("npm", "@acme/weather"); ok {
				t.Error("found something in it")
			}
			update(t, r)
			if _, ok := offline(r).Package("npm", "@acme/weather"); !ok {
				t.Error("an update did not make it anew")
			}
		})
	}
}

func TestAnotherRegistryStartsAnew(t *testing.T) {
	dir := t.TempDir()
	a := start(t, &official{servers: many(2)})
	b := start(t, &official{servers: []published{{server: weather, updated: day.Add(-time.Hour * 999)}}})
	a.Dir, b.Dir = dir, dir
	update(t, a)
	if _, ok := b.Package("npm", "s1"); ok {
		t.Error("the index of another registry answers")
	}
	b = &Registry{BaseURL: b.BaseURL, Dir: dir}
	update(t, b)
	if _, ok := b.Package("npm", "@acme/weather"); !ok {
		t.Error("nothing found after the first update")
	}
}

func TestAnErrorDoesNotQuoteTheBaseURL(t *testing.T) {
	for _, base := range []string{"https://user:hunter2@127.0.0.1:1/x", "hunter2://x", "http://hunter2\x7f"} {
		r := &Registry{BaseURL: base, Dir: t.TempDir(), pause: time.Millisecond}
		if err := r.Update(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

func TestTheRegistryAndTheTableAddUp(t *testing.T) {
	notion := `{"name":"com.notion/mcp","version":"2.0.0","packages":[{"registryType":"npm","identifier":"@notionhq/notion-mcp-server","transport":{"type":"stdio"},
		"environmentVariables":[{"name":"NOTION_TOKEN","isRequired":true,"isSecret":true,"description":"theirs"}]}]}`
	r := start(t, &official{servers: []published{{server: notion, updated: day}}})
	update(t, r)
	e, _ := offline(r).Package("npm", "@notionhq/notion-mcp-server")
	want := []Variable{{Name: "NOTION_TOKEN", Description: "theirs", Required: true, Secret: true,
		Help: "https://www.notion.so/profile/integrations", Or: []string{"OPENAPI_MCP_HEADERS"}, Mistaken: []string{"NOTION_API_KEY"}}}
	if diff := cmp.Diff(want, e.Packages[0].Variables); diff != "" || e.BuiltIn || e.Status != "" {
		t.Errorf("built in %v, status %q: %s", e.BuiltIn, e.Status, diff)
	}
	if found := offline(r).Search("notion", 10); len(found) != 1 {
		t.Errorf("the same server is found twice: %+v", found)
	}
}

func TestAVariableCanBeGivenInOtherWays(t *testing.T) {
	e, _ := new(Registry).Package("npm", "@brave/brave-search-mcp-server")
	v := e.Packages[0].Variables[0]
	for _, test := range []struct {
		set  string
		args []string
		want bool
	}{
		{"", nil, false},
		{"BRAVE_API_KEY", nil, true},
		{"BRAVE_API_KEY_FILE", nil, true},
		{"", []string{"-y", "@brave/brave-search-mcp-server", "--brave-api-key", "x"}, true},
		{"", []string{"--brave-api-key=x"}, true},
		{"", []string{"--brave-api-keys=x"}, false},
	} {
		if got := v.Given(func(name string) bool { return name == test.set }, test.args); got != test.want {
			t.Errorf("with %q and %q: %v", test.set, test.args, got)
		}
	}
}

func TestTheBuiltInTableIsSound(t *testing.T) {
	names := make(map[string]bool)
	keys := make(map[string]string)
	for _, e := range builtin {
		if names[e.Name] || strings.Contains(e.Name, "/") || !e.BuiltIn || e.Title == "" {
			t.Errorf("%q: a name twice, not plain, or something left out", e.Name)
		}
		names[e.Name] = true
		if len(e.keys()) == 0 {
			t.Errorf("%s cannot be found", e.Name)
		}
		for _, k := range e.keys() {
			if keys[k] != "" {
				t.Errorf("%s is in %s and %s", k, keys[k], e.Name)
			}
			keys[k] = e.Name
		}
		if (e.Status == "") != (e.StatusMessage == "") {
			t.Errorf("%s: a status without a message, or the other way round", e.Name)
		}
		for _, p := range e.Packages {
			for _, v := range p.Variables {
				if !variableName.MatchString(v.Name) || v.Help != cleanURL(v.Help) || v.Secret && v.Default != "" {
					t.Errorf("%s: %+v", e.Name, v)
				}
				for _, m := range v.Mistaken {
					if m == v.Name || slices.Contains(v.Or, m) {
						t.Errorf("%s: %s is right and wrong at once", e.Name, m)
					}
				}
			}
		}
	}
	t.Logf("%d servers, %d ways to find them", len(names), len(keys))
}

// Whoever changes what was found must not change the table.
func TestAnEntryIsACopy(t *testing.T) {
	r := new(Registry)
	e, _ := r.Package("npm", "tavily-mcp")
	e.Packages[0].Variables[0].Name = "CHANGED"
	if e, _ := r.Package("npm", "tavily-mcp"); e.Packages[0].Variables[0].Name != "TAVILY_API_KEY" {
		t.Error("the table was changed")
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte(`{"server":` + weather + `}`))
	f.Add([]byte(`{"server":{"name":"a/b","remotes":[{"url":"https://{a}.x/{b"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l listed
		if json.Unmarshal(data, &l) != nil {
			return
		}
		e, ok := l.entry()
		if !ok {
			return
		}
		line, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		ix := &index{rows: line}
		for _, k := range e.keys() {
			if _, ok := ix.find(k); !ok {
				t.Errorf("%q is not found by %q", line, k)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	ix := &index{}
	for range 20_000 {
		var l listed
		if err := json.Unmarshal([]byte(`{"server":`+strings.Replace(weather, "@acme/weather", strconv.Itoa(len(ix.rows)), 1)+`}`), &l); err != nil {
			b.Fatal(err)
		}
		e, _ := l.entry()
		line, _ := encode(e)
		ix.rows = append(ix.rows, line...)
	}
	for b.Loop() {
		ix.find("npm:not-there")
	}
	b.ReportMetric(float64(len(ix.rows)>>20), "MiB")
}
