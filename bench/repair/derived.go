package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/toolset"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// The derived set breaks every value of valid calls of real tools in turn.
// It uses only slips whose outcome follows from the slip itself, and the word of
// the bare engine on whether the call is broken at all, so its labels owe nothing
// to judgement.

// breakAll makes the cases of one valid call.
func breakAll(engine *jsonschema.Schema, call toolset.Case) []toolset.Case {
	d := deriver{engine: engine, call: call}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(call.Arguments))
	if err != nil {
		return nil
	}
	d.root = root
	d.whole()
	d.walk(root, func(v any) { d.root = v })
	return d.cases
}

type deriver struct {
	engine *jsonschema.Schema
	call   toolset.Case
	root   any
	cases  []toolset.Case
}

// add takes the call as it is broken now, if the engine rejects it.
func (d *deriver) add(kind, verdict string, representation bool) {
	err := d.engine.Validate(d.root)
	if err == nil {
		return
	}
	c := d.call
	if aboutFormat(err.(*jsonschema.ValidationError)) {
		c.ValidatorMode = "assert_format"
	}
	c.ID = fmt.Sprintf("%s/%s/%d", c.ID, kind, len(d.cases))
	c.Kind, c.Verdict, c.Arguments = kind, verdict, raw(d.root)
	if verdict == mend {
		c.Expected = d.call.Arguments
		c.Policy = policies(c.Risk, representation)
	}
	d.cases = append(d.cases, c)
}

// aboutFormat says that a format is among the objections; older drafts assert it.
func aboutFormat(e *jsonschema.ValidationError) bool {
	_, ok := e.ErrorKind.(*kind.Format)
	return ok || slices.ContainsFunc(e.Causes, aboutFormat)
}

func (d *deriver) whole() {
	call, text := d.root, string(d.call.Arguments)
	for _, s := range []struct{ kind, verdict, text string }{
		{"arguments_text", mend, text},
		{"arguments_text_twice", mend, string(raw(text))},
		{"fence", mend, "```json\n" + text + "\n```"},
		{"python", mend, python(call)},
		{"cut_off", leave, text[:len(text)-1]},
		{"two_objects", leave, text + text},
	} {
		d.root = s.text
		d.add(s.kind, s.verdict, true)
	}
	d.root = call
}

// walk breaks v, which set puts in its place, and all that is in it.
func (d *deriver) walk(v any, set func(any)) {
	slip := func(kind, verdict string, bad any, representation bool) {
		set(bad)
		d.add(kind, verdict, representation)
		set(v)
	}
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(string(v), "eE") {
			slip("number_text", mend, string(v), true)
		}
		slip("number_with_unit", leave, string(v)+" px", false)
		slip("number_with_zeros", leave, "00"+string(v), false)
		slip("list_for_one", mend, []any{v}, false)
	case bool:
		slip("boolean_text", mend, fmt.Sprint(v), true)
		slip("python_boolean", mend, python(v), true)
		slip("word_for_boolean", leave, "yes", false)
		slip("list_for_one", mend, []any{v}, false)
	case string:
		slip("list_for_one", mend, []any{v}, false)
		slip("several_for_one", leave, []any{v, v}, false)
		slip("other_word", leave, v+"q", false)
		slip("boolean_for_text", leave, true, false)
		slip("fraction_for_text", leave, json.Number("1.10"), false)
		slip("object_for_text", leave, map[string]any{"a": v}, false)
	case []any:
		slip("container_text", mend, string(raw(v)), true)
		for i, item := range v {
			d.walk(item, func(n any) { v[i] = n })
		}
	case map[string]any:
		slip("container_text", mend, string(raw(v)), true)
		slip("several_for_one", leave, []any{v, v}, false)
		for _, key := range slices.Sorted(keys(v)) {
			d.walk(v[key], func(n any) { v[key] = n })
			d.misname(v, key)
		}
	}
}

// misname gives a member another name.
func (d *deriver) misname(object map[string]any, key string) {
	value := object[key]
	typo := key + "qz"
	if _, ok := object[typo]; ok {
		return
	}
	delete(object, key)
	object[typo] = value
	d.add("key_typo", leave, false)
	delete(object, typo)
	object[key] = value
}
