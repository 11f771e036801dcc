package clientconfig

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// readPlace reads the servers of one scope.
func (f *File) readPlace(p Place) {
	if len(p.Key) == 0 || slices.Contains(p.Key, "{project}") && f.project == "" {
		return
	}
	root := f.doc.root
	if root == nil {
		return
	}
	if root.kind != object {
		f.problem(Problem{Kind: WrongRoot, Detail: "the top of the file is " + root.kind.String() + ", not an object"}, root)
		return
	}
	key := f.key(p)
	container, ok := f.container(root, key)
	if !ok {
		return
	}
	if container != nil {
		f.readContainer(container, key, p)
	}
	if len(p.Key) == 1 || len(f.Places) == 1 {
		f.lookElsewhere(root, container, p, key)
	}
}

// container walks to the servers. It returns nil if there are none, and false if
// the way is blocked.
func (f *File) container(n *node, key Path) (*node, bool) {
	for i, name := range key {
		if n.kind != object {
			f.problem(Problem{Kind: WrongRoot, Path: key[:i], Detail: "this is " + n.kind.String() + ", not an object"}, n)
			return nil, false
		}
		next := n.get(name)
		if next == nil || next.kind == null {
			return nil, true
		}
		n = next
	}
	return n, true
}

func (f *File) readContainer(c *node, key Path, p Place) {
	want := object
	if p.List {
		want = list
	}
	if c.kind != want {
		f.problem(Problem{Kind: WrongContainer, Path: key, Detail: "the servers are " + c.kind.String() + ", should be " + want.String()}, c)
		return
	}
	for i, e := range c.elements {
		f.readEntry(member{value: e}, key.then(strconv.Itoa(i)), p)
	}
	for i := range c.members {
		m := c.members[i]
		if c.member(m.name).start != m.start {
			continue // a later one of the same name counts
		}
		at := key.then(m.name)
		switch last := key[len(key)-1]; {
		case p.Nested != "" && m.name == p.Nested && m.value.kind == object && !looksLikeServer(m.value):
			f.readContainer(m.value, at, Place{Scope: p.Scope})
		case (m.name == last || slices.Contains(knownKeys(), m.name)) && m.value.kind == object && !looksLikeServer(m.value) && holdsServers(m.value):
			f.problem(Problem{Kind: DoublyNested, Path: at, Have: m.name}, m.value)
		default:
			f.readEntry(m, at, p)
		}
	}
}

// lookElsewhere looks for servers under a key where the client does not: that of another
// client, or one that is misspelt. Beside servers that it reads, those count which are
// not among them: a file may be meant for several clients.
func (f *File) lookElsewhere(root, container *node, p Place, key Path) {
	found := false
	for i := range root.members {
		m := &root.members[i]
		if m.name == key[0] || root.member(m.name).start != m.start {
			continue
		}
		at, value := Path{m.name}, m.value
		if inner := m.value.member("servers"); inner != nil && (m.name == "mcp" || m.name == "mcpServers") && !holdsServers(m.value) {
			at, value = Path{m.name, "servers"}, inner.value // as VS Code had it in its settings
		}
		if !meansServers(at, key[0]) || !holdsServers(value) || f.hasAll(container, value) {
			continue
		}
		found = true
		f.Problems = append(f.Problems, Problem{Kind: WrongKey, At: f.lines.at(m.start), Path: at,
			Have: strings.Join(at, "."), Want: strings.Join(key, ".")})
	}
	if !found && container == nil && holdsServers(root) {
		f.problem(Problem{Kind: NoKey, Want: strings.Join(key, ".")}, root)
	}
}

// meansServers reports whether a key is another client's, or this one's misspelt.
func meansServers(at Path, key string) bool {
	name := at[0]
	return len(at) > 1 || bare(name) == bare(key) || distance(name, key) == 1 || distance(bare(name), bare(key)) == 1 ||
		slices.Contains(knownKeys(), name)
}

// bare is a name without what joins its words.
func bare(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// hasAll reports whether all servers of a value stand in the container, too.
func (f *File) hasAll(container, value *node) bool {
	if container == nil {
		return false
	}
	entries, err := namedEntries(value)
	return err == nil && !slices.ContainsFunc(entries, func(e namedEntry) bool { return f.Server(e.name) == nil })
}

// knownKeys are the names under which any client keeps its servers.
func knownKeys() []string {
	keys := []string{"mcp.servers", "amp.mcpServers"}
	for _, c := range loadClients() {
		for _, p := range c.Files {
			if len(p.Key) == 1 && !slices.Contains(keys, p.Key[0]) {
				keys = append(keys, p.Key[0])
			}
		}
	}
	return keys
}

// holdsServers reports whether a value is a collection of things that look like
// servers, at least one and nothing else.
func holdsServers(n *node) bool {
	values := n.elements
	for _, m := range n.members {
		values = append(values, m.value)
	}
	return len(values) > 0 && !slices.ContainsFunc(values, func(v *node) bool { return !looksLikeServer(v) })
}

var programNames = []string{"command", "cmd", "url", "uri", "serverUrl", "httpUrl"}

func looksLikeServer(n *node) bool {
	return n.kind == object && slices.ContainsFunc(programNames, func(name string) bool {
		v := n.get(name)
		return v != nil && (v.kind == text || v.kind == list || v.kind == object && v.get("path") != nil)
	})
}

// problem files a problem at the place of a node.
func (f *File) problem(p Problem, n *node) {
	p.At = f.lines.at(n.start)
	f.Problems = append(f.Problems, p)
}

// An entryReader reads one entry and notes what is wrong with it.
type entryReader struct {
	f     *File
	s     *Server
	n     *node
	names *Entry
	since int // the problems before this one are of other entries
}

func (f *File) readEntry(m member, path Path, p Place) {
	e := &f.Client.Entry
	s := &Server{Client: f.Client, File: f.Path, Scope: p.Scope, At: f.lines.at(m.value.start), Path: path,
		Name: Value{Text: m.name, At: f.lines.at(m.start), Path: path}}
	if !p.List {
		s.At = s.Name.At
	}
	r := &entryReader{f, s, m.value, e, len(f.Problems)}
	if m.value.kind != object {
		s.Name.Text = path[len(path)-1]
		if isRemark(s.Name.Text) && !f.Client.refuses(WrongShape) {
			return
		}
		r.complain(WrongShape, m.value, path, "the entry is "+m.value.kind.String()+", not an object")
		f.Servers = append(f.Servers, s)
		return
	}
	if p.List {
		s.Name = r.text("name")
		if s.Name.Text == "" {
			r.complain(NoName, m.value, path, "")
		}
	}
	if r.notOurs() {
		return
	}
	r.read()
	f.Servers = append(f.Servers, s)
}

// isRemark reports whether a name is one under which people keep remarks in JSON, which has
// no comments.
func isRemark(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "$")
}

func (r *entryReader) notOurs() bool {
	if typ := r.n.get(r.names.Type); typ != nil && slices.Contains(r.names.NotOurs.Types, typ.value) {
		return true
	}
	has := func(name string) bool { return name != "" && r.n.get(name) != nil }
	return !has(r.names.Type) && slices.ContainsFunc(r.names.NotOurs.Keys, has) && !has(r.names.Command) &&
		!slices.ContainsFunc(r.names.URLs, func(u URLName) bool { return has(u.Name) })
}

func (r *entryReader) read() {
	s, e := r.s, r.names
	s.Type = r.text(e.Type)
	r.command()
	if e.Args != "" {
		s.Args = append(s.Args, r.args(e.Args)...)
	}
	s.Env = append(s.Env, r.pairs(e.Env)...)
	s.EnvFrom = r.list(e.EnvFrom)
	s.EnvFile = r.text(e.EnvFile)
	s.Cwd = r.text(e.Cwd)
	s.Headers = r.pairs(e.Headers)
	s.HeadersFrom = r.pairs(e.HeadersFrom)
	if v := r.text(e.BearerFrom); v.Path != nil {
		s.HeadersFrom = append(s.HeadersFrom, Pair{Value{"Authorization", v.At, v.Path}, v})
	}
	s.Timeout = r.scalar(e.Timeout)
	s.Disabled = r.truth(e.Disabled, false) || !r.truth(e.Enabled, true)
	r.transport()
	r.others()
	r.judge()
}

// command reads the program, in the three ways clients write it.
func (r *entryReader) command() {
	s, e := r.s, r.names
	n, path := r.at(e.Command)
	switch {
	case n == nil:
	case e.CommandList && n.kind == list:
		for i, v := range r.list(e.Command) {
			if i == 0 {
				s.Command = v
			} else {
				s.Args = append(s.Args, v)
			}
		}
	case e.CommandPath != "" && n.kind == object:
		inner := &entryReader{r.f, s, n, e, r.since}
		below := func(name string) Path { return path.then(name) }
		if v := n.get(e.CommandPath); v != nil && v.kind == text {
			s.Command = inner.value(v, below(e.CommandPath))
		}
		if v := n.get(e.Args); v != nil {
			s.Args = inner.texts(v, below(e.Args))
		}
		if v := n.get(e.Env); v != nil {
			s.Env = inner.members(v, below(e.Env))
		}
	case e.CommandList:
		s.Command = r.value(n, path)
		r.complain(WrongShape, n, path, "the command is "+n.kind.String()+", should be a list with the program first")
	default:
		s.Command = r.text(e.Command)
	}
}

func (r *entryReader) transport() {
	s, e := r.s, r.names
	for _, u := range e.URLs {
		if v := r.text(u.Name); v.Path != nil {
			s.URL, s.Transport = v, u.Transport
			break
		}
	}
	if s.URL.Path == nil && s.Command.Path != nil {
		s.Transport = Stdio
	}
	if s.URL.Path != nil && s.Transport == Unknown && s.Type.Path == nil {
		s.Transport = e.Untyped
	}
	if t, ok := e.transport(s.Type.Text); ok {
		s.Transport = t
	}
}

// others keeps what no field of Server holds, and looks for names that were
// meant to be something else.
func (r *entryReader) others() {
	names := r.names.names()
	for _, m := range r.n.members {
		path := r.s.Path.then(m.name)
		if kind := r.names.Kinds[m.name]; kind != "" && m.value.kind != null && m.value.kind != kinds[kind] {
			r.complain(WrongShape, m.value, path, m.name+" is "+m.value.kind.String()+", should be "+kinds[kind].String())
		}
		if slices.Contains(names, m.name) && !slices.Contains(r.names.Also, m.name) {
			continue
		}
		at := r.f.lines.at(m.start)
		other := Pair{Value{m.name, at, path}, r.value(m.value, path)}
		r.s.Other = append(r.s.Other, other)
		if r.names.CommandList && anyNames[m.name] == asArgs && m.value.kind >= text && !m.value.isNothing() {
			r.f.Problems = append(r.f.Problems, Problem{Kind: WrongName, At: at, Path: path, Server: r.s.Name.Text, Have: m.name, Want: r.names.Command})
		}
		if want := r.meant(m.name); want != "" && !slices.Contains(names, m.name) {
			r.f.Problems = append(r.f.Problems, Problem{Kind: WrongName, At: at, Path: path, Server: r.s.Name.Text, Have: m.name, Want: want})
		}
	}
}

// elsewhere are the names other clients use, by what they mean.
var elsewhere = []struct {
	names []string
	ours  func(*Entry) string
}{
	{[]string{"command", "cmd"}, func(e *Entry) string { return e.Command }},
	{[]string{"args", "arguments"}, func(e *Entry) string { return e.Args }},
	{[]string{"env", "envs", "environment"}, func(e *Entry) string { return e.Env }},
	{[]string{"cwd", "working_directory", "workingDirectory"}, func(e *Entry) string { return e.Cwd }},
	{[]string{"headers", "http_headers"}, func(e *Entry) string { return e.Headers }},
	{[]string{"type", "transport", "transportType"}, func(e *Entry) string { return e.Type }},
	{[]string{"url", "uri", "serverUrl", "httpUrl"}, func(e *Entry) string {
		if len(e.URLs) == 0 {
			return ""
		}
		return e.URLs[0].Name
	}},
}

// meant returns the name of this client that an unknown one stands for, or "".
// A name that the entry has already cannot be meant.
func (r *entryReader) meant(name string) string {
	free := func(want string) bool { return want != "" && !strings.Contains(want, ".") && r.n.get(want) == nil }
	for _, group := range elsewhere {
		if want := group.ours(r.names); want != "" && slices.Contains(group.names, name) && r.n.find(strings.Split(want, ".")) == nil {
			return want
		}
	}
	for _, want := range r.names.names() {
		if free(want) && len(name) > 2 && (strings.EqualFold(name, want) || distance(name, want) == 1) {
			return want
		}
	}
	return ""
}

// judge compares the entry as a whole with what the client needs.
func (r *entryReader) judge() {
	s, e := r.s, r.names
	hasCommand, hasURL := s.Command.Path != nil, s.URL.Path != nil
	written, _ := r.at(e.Command) // perhaps in a wrong shape, which has been said
	switch {
	case hasCommand && hasURL && len(e.URLs) == 1:
		r.complain(CommandAndURL, r.n, s.Path, "")
	case written == nil && !hasURL && !r.renamed():
		r.complain(NoCommand, r.n, s.Path, "")
	}
	if hasCommand && !e.CommandList && s.Args == nil && isCommandLine(s.Command.Text) {
		r.complainAt(CommandHoldsArgs, s.Command.At, s.Command.Path, "")
	}
	r.parts(hasCommand, hasURL)
	if e.Type == "" {
		return
	}
	if _, known := e.transport(s.Type.Text); s.Type.Path != nil && !known {
		r.f.Problems = append(r.f.Problems, Problem{Kind: WrongType, At: s.Type.At, Path: s.Type.Path, Server: s.Name.Text,
			Have: s.Type.Text, Want: r.rightType()})
		return
	}
	if s.Type.Path == nil && (hasURL && e.URLNeedsType || hasCommand && !hasURL && e.CommandNeedsType) {
		r.f.Problems = append(r.f.Problems, Problem{Kind: MissingType, At: s.At, Path: s.Path.then(e.Type), Server: s.Name.Text,
			Want: r.rightType()})
	}
}

// parts looks for what this client cannot do without, and for what it does not stand.
func (r *entryReader) parts(hasCommand, hasURL bool) {
	e := r.names
	if !hasCommand && !hasURL {
		return
	}
	for _, name := range e.needs(r.s) {
		if n := r.n.get(name); n == nil || n.kind == null {
			r.f.Problems = append(r.f.Problems, Problem{Kind: MissingPart, At: r.s.At, Path: r.s.Path.then(name), Server: r.s.Name.Text, Want: name})
		}
	}
	others := []string{e.Args, e.Env, e.EnvFrom, e.Cwd}
	if !hasURL {
		others = []string{e.Headers, e.HeadersFrom, e.BearerFrom}
	}
	for _, name := range others {
		if m := r.n.member(name); e.Apart && name != "" && m != nil && hasCommand != hasURL {
			r.f.Problems = append(r.f.Problems, Problem{Kind: PartNotAllowed, At: r.f.lines.at(m.start), Path: r.s.Path.then(name), Server: r.s.Name.Text, Have: name})
		}
	}
}

// renamed reports whether a command or URL is there under a wrong name, which has
// been said already; and a URL that the client cannot use.
func (r *entryReader) renamed() bool {
	if !r.f.Client.speaksURL() {
		for _, name := range []string{"url", "serverUrl", "httpUrl", "uri"} {
			if m := r.n.member(name); m != nil {
				r.complainAt(NoURLs, r.f.lines.at(m.start), r.s.Path.then(name), "")
				return true
			}
		}
	}
	return slices.ContainsFunc(r.f.Problems[r.since:], func(p Problem) bool {
		return p.Kind == WrongName && (p.Want == r.names.Command || slices.ContainsFunc(r.names.URLs, func(u URLName) bool { return u.Name == p.Want }))
	})
}

// rightType is what to write as the type, as far as the entry tells: the usual
// transport of a URL is Streamable HTTP, and whether it is can only be tried.
func (r *entryReader) rightType() string {
	want := HTTP
	switch {
	case r.s.URL.Path == nil:
		want = Stdio
	case strings.Contains(strings.ToLower(r.s.Type.Text), "sse"):
		want = SSE
	}
	if names := r.names.Types[want]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// isCommandLine tells "npx -y server" from a path with spaces.
func isCommandLine(command string) bool {
	first, rest, found := strings.Cut(command, " ")
	return found && strings.TrimSpace(rest) != "" && first != "" &&
		!strings.ContainsAny(command[:1], `/\~."'`) && filepath.VolumeName(command) == "" && !driveLetter.MatchString(filepath.ToSlash(command)) &&
		!strings.Contains(first, `\`)
}

func (r *entryReader) complain(k Kind, n *node, path Path, detail string) {
	r.complainAt(k, r.f.lines.at(n.start), path, detail)
}

func (r *entryReader) complainAt(k Kind, at Position, path Path, detail string) {
	r.f.Problems = append(r.f.Problems, Problem{Kind: k, At: at, Path: path, Server: r.s.Name.Text, Detail: detail})
}

// at finds a part of the entry by its name, which may have dots.
func (r *entryReader) at(name string) (*node, Path) {
	if name == "" {
		return nil, nil
	}
	below := Path(strings.Split(name, "."))
	n := r.n.find(below)
	if n != nil && n.kind == null {
		n = nil
	}
	return n, r.s.Path.then(below...)
}

func (r *entryReader) value(n *node, path Path) Value {
	return Value{Text: n.value, At: r.f.lines.at(n.start), Path: path}
}

// scalar reads any scalar.
func (r *entryReader) scalar(name string) Value {
	n, path := r.at(name)
	if n == nil || n.kind >= list {
		return Value{}
	}
	return r.value(n, path)
}

// text reads a text and complains about anything else.
func (r *entryReader) text(name string) Value {
	n, path := r.at(name)
	if n == nil {
		return Value{}
	}
	if n.kind != text {
		r.complain(WrongShape, n, path, name+" is "+n.kind.String()+", should be a text")
		return Value{}
	}
	return r.value(n, path)
}

func (r *entryReader) truth(name string, otherwise bool) bool {
	n, path := r.at(name)
	if n == nil {
		return otherwise
	}
	if n.kind != boolean {
		r.complain(WrongShape, n, path, name+" is "+n.kind.String()+", should be true or false")
		return otherwise
	}
	return strings.EqualFold(n.value, "true")
}

func (r *entryReader) args(name string) []Value {
	n, path := r.at(name)
	if n != nil && n.kind == text {
		r.complain(ArgsAsString, n, path, "")
		return nil
	}
	return r.list(name)
}

func (r *entryReader) list(name string) []Value {
	n, path := r.at(name)
	if n == nil {
		return nil
	}
	return r.texts(n, path)
}

// texts reads a list of texts. It is not nil if the list is there.
func (r *entryReader) texts(n *node, path Path) []Value {
	if n.kind != list {
		r.complain(WrongShape, n, path, path[len(path)-1]+" is "+n.kind.String()+", should be a list")
		return nil
	}
	values := []Value{}
	for i, e := range n.elements {
		at := path.then(strconv.Itoa(i))
		if e.kind != text {
			r.complain(WrongShape, e, at, "an element of "+path[len(path)-1]+" is "+e.kind.String()+", should be a text")
		}
		values = append(values, r.value(e, at))
	}
	return values
}

func (r *entryReader) pairs(name string) []Pair {
	n, path := r.at(name)
	if n == nil {
		return nil
	}
	return r.members(n, path)
}

func (r *entryReader) members(n *node, path Path) []Pair {
	if n.kind != object {
		r.complain(WrongShape, n, path, path[len(path)-1]+" is "+n.kind.String()+", should be an object")
		return nil
	}
	var pairs []Pair
	for i := range n.members {
		m := &n.members[i]
		at := path.then(m.name)
		if n.member(m.name).start != m.start {
			continue
		}
		if m.value.kind != text {
			r.complain(WrongShape, m.value, at, m.name+" is "+m.value.kind.String()+", should be a text")
		}
		pairs = append(pairs, Pair{Value{m.name, r.f.lines.at(m.start), at}, r.value(m.value, at)})
	}
	return pairs
}

// distance is the number of letters to add, drop, change or swap with their
// neighbour, as far as it is 0 or 1; 2 stands for more.
func distance(a, b string) int {
	if a == b {
		return 0
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(b)-len(a) == 1 && a[i:] == b[i+1:]:
		return 1
	case len(a) == len(b) && a[i+1:] == b[i+1:]:
		return 1
	case len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]:
		return 1
	}
	return 2
}
