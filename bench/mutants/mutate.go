package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// An operator is a way to break code.
type operator string

// The operators.
const (
	negate   operator = "negate"   // a condition
	drop     operator = "drop"     // a statement
	constant operator = "constant" // another one
	early    operator = "return"   // before the work is done
)

var operators = []operator{negate, drop, constant, early}

// A mutant is one change of one file.
type mutant struct {
	// ID says which change it is, without a line number, so that it stays the same when
	// something else in the file changes.
	ID       string   `json:"id"`
	File     string   `json:"file"` // from the root of the tree, with slashes
	Line     int      `json:"line"`
	Operator operator `json:"operator"`
	Before   string   `json:"before"`
	After    string   `json:"after"`

	from, to int // offsets of what is replaced
	with     string
}

// apply returns the changed file.
func (m mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.from], []byte(m.with), src[m.to:])
}

// mutantsOf are all mutants of a file, in the order of the file.
func mutantsOf(file string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, src: src, offset: func(p token.Pos) int { return fset.Position(p).Offset }}
	for _, decl := range parsed.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && !slices.Contains([]string{"String", "GoString", "Error"}, d.Name.Name) {
				f.name = d.Name.Name
				f.function(d.Type, d.Body)
				ast.Inspect(d.Body, f.visit)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					f.name = v.Names[0].Name
					for _, value := range v.Values {
						ast.Inspect(value, f.visit)
					}
				}
			}
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int { return a.from - b.from })
	seen := make(map[string]int)
	for i := range f.found {
		m := &f.found[i]
		if seen[m.ID]++; seen[m.ID] > 1 {
			m.ID += fmt.Sprintf(" #%d", seen[m.ID])
		}
	}
	return f.found, nil
}

type finder struct {
	file   string
	src    []byte
	offset func(token.Pos) int
	name   string // of the declaration that is looked at
	found  []mutant
}

func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// add notes that n may be replaced.
func (f *finder) add(op operator, n ast.Node, with, after string) {
	from := f.offset(n.Pos())
	before := shorten(f.text(n))
	to := f.offset(n.End())
	what := before
	if op == constant { // which says too little alone
		what += " in " + f.line(from)
	}
	if op == early {
		to = from
	}
	f.found = append(f.found, mutant{
		ID: fmt.Sprintf("%s %s: %s %s", f.file, f.name, op, what), File: f.file, Line: 1 + bytes.Count(f.src[:from], []byte("\n")),
		Operator: op, Before: before, After: after, from: from, to: to, with: with,
	})
}

// line is the line around an offset.
func (f *finder) line(at int) string {
	from := bytes.LastIndexByte(f.src[:at], '\n') + 1
	line, _, _ := strings.Cut(string(f.src[from:]), "\n")
	return shorten(line)
}

// shorten makes one line of it that fits into a table.
func shorten(text string) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > 100 {
		return string(words[:100]) + "…"
	}
	return string(words)
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if isText(n.Fun) {
			return false
		}
		f.words(n)
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "make" {
			return false // room for more is not a change
		}
	case *ast.FuncLit:
		f.function(n.Type, n.Body)
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.BasicLit:
		f.number(n)
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.add(constant, n, other, other)
		}
	}
	return true
}

// isText: a call that only makes text for people, by the name of what is called.
func isText(fun ast.Expr) bool {
	for {
		sel, ok := fun.(*ast.SelectorExpr)
		if !ok {
			name, ok := fun.(*ast.Ident)
			return ok && slices.Contains([]string{"fmt", "slog", "log", "errors"}, name.Name)
		}
		if slices.Contains([]string{"log", "Log", "logger"}, sel.Sel.Name) {
			return true
		}
		fun = sel.X
	}
}

func (f *finder) negate(cond ast.Expr) {
	with := "!(" + f.text(cond) + ")"
	f.add(negate, cond, with, shorten(with))
}

// binary negates the parts of a condition, and changes the text something is compared with.
func (f *finder) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		f.negate(n.X)
		f.negate(n.Y)
	case token.EQL, token.NEQ:
		f.string(n.X)
		f.string(n.Y)
	}
}

func (f *finder) cases(n *ast.SwitchStmt) {
	for _, s := range n.Body.List {
		for _, e := range s.(*ast.CaseClause).List {
			if n.Tag == nil {
				f.negate(e)
			} else {
				f.string(e)
			}
		}
	}
}

// words are texts that decide something: what is looked for in other texts.
func (f *finder) words(n *ast.CallExpr) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if name, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"strings", "bytes", "filepath", "path"}, name.Name) {
		for _, a := range n.Args {
			f.string(a)
		}
	}
}

func (f *finder) string(e ast.Expr) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			with := strconv.Quote(text + "~")
			f.add(constant, lit, with, with)
		}
	}
}

func (f *finder) number(lit *ast.BasicLit) {
	if lit.Kind != token.INT {
		return
	}
	n, err := strconv.ParseInt(lit.Value, 0, 64)
	if err != nil {
		return
	}
	with := strconv.FormatInt(n+1, 10)
	if strings.HasPrefix(lit.Value, "0o") {
		with = fmt.Sprintf("%O", n+1)
	}
	f.add(constant, lit, with, with)
}

// statements are dropped where the code still means something without them.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || !isText(call.Fun) {
				f.add(drop, s, "", "")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !f.isBlank(s) {
				f.add(drop, s, "", "")
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.BranchStmt, *ast.ReturnStmt:
			f.add(drop, s, "", "")
		}
	}
}

// isBlank: the assignment only says that something is ignored.
func (f *finder) isBlank(s *ast.AssignStmt) bool {
	name, ok := s.Lhs[0].(*ast.Ident)
	if !ok || len(s.Lhs) != 1 || name.Name != "_" {
		return false
	}
	_, call := s.Rhs[0].(*ast.CallExpr)
	return !call
}

// function returns before each of its statements, with zeros.
func (f *finder) function(t *ast.FuncType, body *ast.BlockStmt) {
	var zeros []string
	if t.Results != nil {
		for _, field := range t.Results.List {
			if len(field.Names) > 0 {
				zeros = nil // a bare return takes what the results are by then
				break
			}
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	with := strings.TrimSpace("return " + strings.Join(zeros, ", "))
	for _, s := range body.List {
		if r, ok := s.(*ast.ReturnStmt); ok && !slices.ContainsFunc(r.Results, func(e ast.Expr) bool { return !isZero(e) }) {
			continue
		}
		if e, ok := s.(*ast.ExprStmt); ok && isTextStatement(e) {
			continue
		}
		f.add(early, s, with+"; ", with)
	}
}

func isTextStatement(e *ast.ExprStmt) bool {
	call, ok := e.X.(*ast.CallExpr)
	return ok && isText(call.Fun)
}

func isZero(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "false"
	case *ast.BasicLit:
		return e.Value == "0" || e.Value == `""`
	}
	return false
}
