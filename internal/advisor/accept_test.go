package advisor

import (
	"strings"
	"testing"
)

func TestAcceptableKeepsToWhatAModelMayCorrect(t *testing.T) {
	for _, tc := range []struct {
		before, after string
		want          string // part of the error; "" for acceptable
	}{
		// What a model is asked for.
		{`{"state":"opne"}`, `{"state":"open"}`, ""},
		{`{"limit":5000}`, `{"limit":1000}`, ""},
		{`{"stat":"open"}`, `{"state":"open"}`, ""}, // a key renamed
		{`{"labels":"a,b"}`, `{"labels":["a","b"]}`, ""},
		{`{"labels":["a"]}`, `{"labels":["a","b"]}`, ""},
		{`{"data":{"limit":1}}`, `{"limit":1}`, ""}, // all is still said
		{`{"limit":1,"sort":null}`, `{"limit":1}`, ""},
		{`{"since":"yesterday"}`, `{"since":"2026-11-13"}`, ""},
		{`{"body":"a > b"}`, `{"body":"a  > b"}`, ""},
		{`{}`, `{"state":"open"}`, ""},

		// Representation may change anywhere.
		{`{"issue_id":"42"}`, `{"issue_id":42}`, ""},
		{`{"paths":"[\"a/b\", \"c\"]"}`, `{"paths":["a/b","c"]}`, ""},
		{`{"to":"a@example.com"}`, `{"to":["a@example.com"]}`, ""},
		{`{"to":["a@example.com"]}`, `{"to":"a@example.com"}`, ""},
		{`{"issue_id":"042"}`, `{"issue_id":42}`, "/issue_id"},
		{`{"issue_id":42}`, `{"issue_id":"42"}`, "/issue_id"}, // a zero in front may be lost already
		{`{"to":["a@example.com","b@example.com"]}`, `{"to":"a@example.com"}`, "/to"},
		{`{"to":"null"}`, `{"to":null}`, "/to"},

		// By name.
		{`{"path":"a"}`, `{"path":"b"}`, "changes /path"},
		{`{"path":"a"}`, `{}`, "drops /path"},
		{`{}`, `{"path":"a"}`, "adds /path"},
		{`{"file_path":"a"}`, `{"path":"a"}`, "/file_path"}, // even to rename it is to choose
		{`{"filePaths":["a"]}`, `{"filePaths":["b"]}`, "/filePaths/0"},
		{`{"baseURL":"a"}`, `{"baseURL":"b"}`, "/baseURL"},
		{`{"userID":1}`, `{"userID":2}`, "/userID"},
		{`{"total_amount":1}`, `{"total_amount":1.0}`, "/total_amount"},
		{`{"recipients":[{"x":1}]}`, `{"recipients":[{"x":2}]}`, "/recipients/0/x"},
		{`{"x":{"force":false}}`, `{"x":{"force":true}}`, "/x/force"},
		{`{"x":1}`, `{"x":{"role":"admin"}}`, "/x/role"},
		{`{"password":"a"}`, `{"password":"b"}`, "/password"},
		{`{"a/path":"a"}`, `{"a/path":"b"}`, "/a~1path"},
		{`{"marked":1}`, `{"marked":2}`, "/marked"},
		{`{"x":[{"marked":1}]}`, `{"x":"y"}`, "/x/0/marked"},

		// By value.
		{`{"x":"/etc/passwd"}`, `{"x":"passwd"}`, "path"},
		{`{"x":"y"}`, `{"x":"../y"}`, "path"},
		{`{"x":"y"}`, `{"x":"C:\\y"}`, "path"},
		{`{"x":"y"}`, `{"x":"~/y"}`, "path"},
		{`{"x":"y"}`, `{"x":"https://y"}`, "address"},
		{`{"x":"y"}`, `{"x":["y","a@example.com"]}`, "address"},
		{`{"x":{}}`, `{"x":{"../y":1}}`, "path"},
		{`{"x":"y"}`, `{"x":"$(y)"}`, "shell"},
		{`{"x":"y"}`, "{\"x\":\"`y`\"}", "shell"},
		{`{"x":"y"}`, `{"x":"y\nz"}`, "shell"},

		// What was said.
		{`{"x":1,"y":2}`, `{"x":1}`, "drops /y"},
		{`{"x":{"y":2}}`, `{"x":3}`, "drops /x/y"},
		{`{"x":1,"y":1}`, `{"z":1}`, "drops /y"},
		{`{"x":[1,2]}`, `{"x":[1]}`, "drops /x/1"},

		// Readers that could differ.
		{`{"x":1}`, `{"x":1,"x":2}`, "twice"},
		{`{"x":1}`, `[{"x":1}]`, "not a JSON object"},
		{`{"x":1}`, `{"x":1}}`, "not JSON"},
		{`{"x":1}`, `null`, "not a JSON object"},
		{`{"x":1}`, ``, "not JSON"},
		{``, `{"x":1}`, "before"},
		{`{"x":1}`, `{"x":"\udc00"}`, "do not exist"},
		{`{"x":1}`, `{"x":"` + strings.Repeat("a", maxArguments) + `"}`, "bytes"},
	} {
		err := Acceptable([]byte(tc.before), []byte(tc.after), func(pointer string) bool { return strings.HasSuffix(pointer, "/marked") })
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s -> %.80s: %v", tc.before, tc.after, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s -> %.80s: got %v, want %q", tc.before, tc.after, err, tc.want)
		}
	}
}

func TestWhatIsAcceptedOnceIsTheSameAlways(t *testing.T) {
	before, after := `{"a":"1","b":"2","c":"3","path":"x","url":"y"}`, `{"a":"9","b":"8","path":"p","url":"u","z":"3"}`
	first := Acceptable([]byte(before), []byte(after), nil).Error()
	for range 50 {
		if got := Acceptable([]byte(before), []byte(after), nil).Error(); got != first {
			t.Fatalf("got %q, before %q", got, first)
		}
	}
}

// Whatever a model writes, what comes out is one JSON object that differs from the
// call in nothing sensitive.
func FuzzReply(f *testing.F) {
	f.Add(`{"arguments":{"state":"open","path":"a"}}`)
	f.Add(`{"corrected":false,"reason":"x"}`)
	f.Add("```json\n{\"arguments\":{\"state\":[\"open\"],\"path\":\"a\",\"q\":1}}```")
	f.Add(`{"arguments":{"state":"[hidden]","path":"a"}}`)
	q := Question{Tool: "t", Arguments: []byte(`{"state":"opne","path":"a","token":"abcd1234"}`), Valid: func([]byte) error { return nil }, MayAdd: func(string) bool { return true }}
	before, err := q.check()
	if err != nil {
		f.Fatal(err)
	}
	_, m := newPrompt(q, before, nil)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readReply(strings.ReplaceAll(text, "NONCE", m.nonce), q, m)
		if err != nil {
			return
		}
		answer, err := r.judge(q, before)
		if err != nil || !answer.Corrected {
			return
		}
		after, err := decodeObject(answer.Arguments)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, answer.Arguments, err)
		}
		if after["path"] != "a" || after["token"] != "abcd1234" {
			t.Errorf("%q became %s", text, answer.Arguments)
		}
		if err := Acceptable(q.Arguments, answer.Arguments, nil); err != nil {
			t.Errorf("%q became %s: %v", text, answer.Arguments, err)
		}
	})
}
