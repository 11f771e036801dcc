package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// canaries are secrets of every kind that people have, none of them with a look
// that gives it away by itself, so that only being known can.
var canaries = map[string]string{
	"words":      "correct/horse-battery+staple",
	"passphrase": "correct horse battery staple zebra",
	"signs":      canary,
	"lines":      "correct-horse\nbattery-staple\nzebra-umbrella",
	"umlauts":    "grüße-aus-dem-öden-würfel",
	"number":     "7203946182037465",
	"key":        "Kx7Qp2mVn9Rt4Lw8Zs3Yb6Hd",
	"slashes":    `back\slash\and"quotes"inside`,
}

// encodings are the ways to write a text that we can name. A letter of ASCII has
// one way in most of them, so that the pieces of one can be looked for.
func encodings(s string) map[string]string {
	all := disguises(s)
	all["json, ascii"] = asciiJSON(s)
	all["percent, all"] = eachByte(s, "%%%02X")
	all["html"] = html.EscapeString(s)
	all["hex"] = hex.EncodeToString([]byte(s))
	all["hex, capital"] = strings.ToUpper(hex.EncodeToString([]byte(s)))
	all["hex, blanks"] = strings.TrimSpace(eachByte(s, "%02x "))
	all["hex, colons"] = strings.TrimSuffix(eachByte(s, "%02X:"), ":")
	all["hex, dashes"] = strings.TrimSuffix(eachByte(s, "%02x-"), "-")
	all["hex, \\x"] = eachByte(s, `\x%02x`)
	all["hex, 0x"] = strings.TrimSuffix(eachByte(s, "0x%02x, "), ", ")
	all["hex, longer"] = hex.EncodeToString([]byte("user:" + s + "@host"))
	all["base64, longer"] = base64.StdEncoding.EncodeToString([]byte(around64 + s + " and goes on behind it"))
	return all
}

const around64 = "a longer text that has it within: "

// own is the part of an encoding that is the secret's alone.
func own(encoding, text, s string) string {
	switch encoding {
	case "hex, longer":
		return hex.EncodeToString([]byte(s))
	case "base64, longer":
		return insideBase64(s)[len(around64)%3*2]
	case "basic":
		return insideBase64(s)[len("u:")*2]
	case "basic, longer":
		return insideBase64(s)[1] // behind "bo:", for addresses
	case "basic, longest":
		return insideBase64(s)[len("bob:")%3*2]
	}
	return text
}

func asciiJSON(s string) string {
	quoted, _ := json.Marshal(s)
	return asciiOnly(string(quoted))
}

// inLines cuts a text after every so many bytes.
func inLines(s string, width int, between string) string {
	return strings.Join(pieces(s, width), between)
}

func pieces(s string, width int) []string {
	var out []string
	for len(s) > width {
		out, s = append(out, s[:width]), s[width:]
	}
	return append(out, s)
}

// splits are the ways in which a text comes in pieces. %d is another number each
// time.
var splits = map[string]string{
	"whole":           "",
	"lines":           "\n",
	"lines of DOS":    "\r\n",
	"folded":          "\n      ",
	"shell":           "\\\n  ",
	"source":          "\" +\n    \"",
	"python":          "'\n    '",
	"log":             "\n[notes] ",
	"log, dated":      "\n2026-11-14 10:20:3%d.12%d INFO notes: ",
	"log, of compose": "\nnotes-1  | ",
	"diff":            "\n+",
	"json":            `\n`,
	"json, log":       `\n[notes] `,
}

// TestACanaryIsShownInNoEncodingAndNoSplit is the measure: each canary in each
// encoding, whole and in pieces of several widths.
func TestACanaryIsShownInNoEncodingAndNoSplit(t *testing.T) {
	cases, shown := 0, 0
	for kind, value := range canaries {
		h := New(value)
		for encoding, text := range encodings(value) {
			for split, between := range splits {
				for _, width := range []int{7, 16, 40} {
					if split == "whole" {
						width = 1 << 20
					}
					cut := pieces(text, width)
					var b strings.Builder
					b.WriteString("[notes] started\n[notes] it has ")
					for i, piece := range cut {
						if i > 0 {
							sep := between
							if strings.Contains(sep, "%d") {
								sep = fmt.Sprintf(sep, i%10, i%10)
							}
							b.WriteString(sep)
						}
						b.WriteString(piece)
					}
					b.WriteString("\n[notes] ended\n")
					got := h.Text(b.String())
					cases++
					if left := survivor(got, cut, own(encoding, text, value)); left != "" {
						if shown++; shown <= 12 {
							t.Errorf("%s, %s, %s of %d: %q is left in\n%s\nof\n%s", kind, encoding, split, width, left, got, b.String())
						}
					}
					if !strings.HasPrefix(got, "[notes] started\n[notes] it has ") || !strings.HasSuffix(got, "\n[notes] ended\n") {
						t.Errorf("%s, %s, %s of %d: what stands around it is gone:\n%s", kind, encoding, split, width, got)
					}
				}
			}
		}
	}
	if t.Logf("%d of %d shown", shown, cases); shown > 0 {
		t.Errorf("%d of %d are shown, want none", shown, cases)
	}
}

// survivor is a piece of a secret that is long enough to be one and stands in a text.
func survivor(text string, cut []string, own string) string {
	for _, piece := range cut {
		// Any eight bytes of it, unless they are as good as nothing ("\n\n…", "0x20, 0x").
		for i := 0; i+8 <= len(piece); i += 4 {
			if part := strings.TrimSpace(piece[i : i+8]); len(part) >= 7 && len(bone(part)) >= 5 && strings.Contains(text, part) && strings.Contains(own, part) {
				return part
			}
		}
		if part := strings.TrimSpace(piece); len(bone(part)) >= 5 && strings.Contains(text, part) && strings.Contains(own, part) {
			return part
		}
	}
	return ""
}

// harmless makes tokens that look random and are none of anybody's secrets, in the
// sentences in which servers, docker, package managers and runtimes write them.
func harmlessSentences(r *rand.Rand) []struct{ text, token string } {
	digits := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	const (
		hexes  = "0123456789abcdef"
		b64s   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		lowers = "abcdefghijklmnopqrstuvwxyz0123456789"
		crock  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	)
	uuid := func() string {
		return strings.Join([]string{digits(hexes, 8), digits(hexes, 4), "4" + digits(hexes, 3), "a" + digits(hexes, 3), digits(hexes, 12)}, "-")
	}
	version := func() string { return fmt.Sprintf("%d.%d.%d", r.IntN(30), r.IntN(40), r.IntN(50)) }
	date := func() string {
		return fmt.Sprintf("20%02d-%02d-%02d", 10+r.IntN(30), 1+r.IntN(12), 1+r.IntN(28))
	}
	clock := func(sep string) string {
		return fmt.Sprintf("%02d%s%02d%s%02d", r.IntN(24), sep, r.IntN(60), sep, r.IntN(60))
	}
	var out []struct{ text, token string }
	say := func(format, token string) {
		out = append(out, struct{ text, token string }{fmt.Sprintf(format, token), token})
	}
	say("docker: Error response from daemon: failed to create task for container %s: OCI runtime create failed", digits(hexes, 64))
	say("Error: No such container: %s", digits(hexes, 12))
	say("%s", digits(hexes, 64)) // docker run -d
	say("container %s exited (137)", digits(hexes, 12))
	say("The container name \"/mcp\" is already in use by container \"%s\". You have to remove it", digits(hexes, 64))
	say("Status: Downloaded newer image for ghcr.io/o/r@sha256:%s", digits(hexes, 64))
	say("Digest: sha256:%s", digits(hexes, 64))
	say("/var/lib/docker/containers/%s/config.v2.json", digits(hexes, 64))
	say("mounting \"/var/lib/docker/overlay2/%s/merged\": no space left", digits(hexes, 64))
	say("%s: Pull complete", digits(hexes, 12))
	say("image ID %s", digits(hexes, 64))
	say("fatal: reference is not a tree: %s", digits(hexes, 40))
	say("HEAD is now at %s fix", digits(hexes, 40))
	say("Cloning into 'x' at commit %s", digits(hexes, 40))
	say("checksum mismatch, got %s", digits(hexes, 64))
	say("md5: %s  archive.tgz", digits(hexes, 32))
	say("sha1 %s does not match", digits(hexes, 40))
	say("sha512-%s==", digits(b64s, 86))
	say("integrity checksum failed when using sha512: wanted sha512-%s== but got nothing", digits(b64s, 86))
	say("ETag: \"%s\"", digits(hexes, 32))
	say("build id %s", digits(hexes, 40))
	say("Could not load file or assembly 'System.Text.Json, Version=8.0.0.0, Culture=neutral, PublicKeyToken=%s'. The system cannot find the file", digits(hexes, 16))
	say("FileNotFoundException: Newtonsoft.Json, Version=13.0.0.0, PublicKeyToken=%s", digits(hexes, 16))
	say("[%s] INFO server started", date()+"T"+clock(":")+fmt.Sprintf(".%03dZ", r.IntN(1000)))
	say("%s ERROR boom", date()+"T"+clock(":")+fmt.Sprintf(".%06d+02:00", r.IntN(1000000)))
	say("%s [main] WARN slow", date()+" "+clock(":")+fmt.Sprintf(",%03d", r.IntN(1000)))
	say("see _logs/%s-debug-0.log", date()+"T"+clock("_")+fmt.Sprintf("_%03dZ", r.IntN(1000)))
	say("A complete log of this run can be found in: backup-%s-v2.log", date()+"T"+clock("-")+fmt.Sprintf("-%03dZ", r.IntN(1000)))
	say("snapshot %s taken", strings.ReplaceAll(date(), "-", "")+"T"+clock("")+"Z")
	say("took 12 ms, started at %s", fmt.Sprint(1700000000000+r.Int64N(100000000000)))
	say("\"startedAt\": \"%s\"", date()+"T"+clock(":")+fmt.Sprintf(".%03dZ", r.IntN(1000)))
	say("request id: %s", uuid())
	say("requestId=%s failed", uuid())
	say("correlation id %s", uuid())
	say("\"traceId\": \"%s\"", digits(hexes, 32))
	say("traceparent: %s", "00-"+digits(hexes, 32)+"-"+digits(hexes, 16)+"-01")
	say("job %s finished", uuid())
	say("goroutine at 0x%s", digits(hexes, 16))
	say("0x%s in main () from libc", digits(hexes, 12))
	say("pod mcp-server-%s is evicted", digits(lowers, 10)+"-"+digits(lowers, 5))
	say("run %s", "01"+digits(crock, 24))
	say("node_modules/.pnpm/zod@"+version()+"_%s/node_modules", digits(hexes, 32))
	say("/home/u/.npm/_npx/%s/node_modules/.bin/x", digits(hexes, 16))
	say("/home/u/.cache/uv/archive-v0/%s/bin/python", digits(b64s[:62], 21))
	say("/nix/store/%s-nodejs-24.1.0/bin/node", digits("0123456789abcdfghijklmnpqrsvwxyz", 32))
	say("numpy-%s.whl is not supported", version()+"-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64")
	say("chunk main.%s.js", digits(hexes, 20))
	say("go: github.com/x/y@%s: unknown revision", "v0.0.0-"+strings.ReplaceAll(date(), "-", "")+strings.ReplaceAll(clock(""), ":", "")+"-"+digits(hexes, 12))
	say("h1:%s= does not match go.sum", digits(b64s, 43))
	say("node:internal/modules/cjs/loader:%s", fmt.Sprint(r.IntN(2000)))
	say("MAC %s", strings.TrimSuffix(eachByte(digits(hexes, 6), "%02x:"), ":"))
	say("listening on [fe80::%s%%eth0]:3000", digits(hexes, 4)+":"+digits(hexes, 4)+":"+digits(hexes, 4)+":"+digits(hexes, 4))
	say("claude-sonnet-4-5-%s is overloaded", strings.ReplaceAll(date(), "-", ""))
	say("PID %s", fmt.Sprint(r.IntN(1<<22)))
	say("serial %s", strings.ToUpper(digits(hexes, 40)))
	say("SHA256 fingerprint %s", strings.TrimSuffix(eachByte(digits(hexes, 32), "%02X:"), ":"))
	say("ECS task %s stopped", digits(hexes, 32))
	return out
}

// TestHarmlessTokensStay is the other side of the measure.
func TestHarmlessTokensStay(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 5))
	h := New(canaries["words"], canaries["key"])
	total, gone := 0, 0
	told := make(map[string]bool)
	for total < 20_000 {
		for i, s := range harmlessSentences(r) {
			total++
			if got := h.Text(s.text); got != s.text {
				gone++
				if key := fmt.Sprint(i); !told[key] {
					told[key] = true
					t.Logf("hidden: %s\n     as %s", s.text, got)
				}
			}
		}
	}
	if t.Logf("%d of %d hidden", gone, total); gone*10_000 > total {
		t.Errorf("%d of %d harmless tokens are hidden, want at most 1 in 10,000", gone, total)
	}
}

// What we do not know and nobody named is told by its look, and the harmless ones
// above must not have made us blind.
func TestUnknownSecretsBesideATellingWordAreHidden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const hexes = "0123456789abcdef"
	key := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = hexes[r.IntN(16)]
		}
		return string(b)
	}
	for range 500 {
		for _, format := range []string{
			"the key %s is not valid", "invalid api key: %s", "token %s", "secret=%s", "API key \"%s\" was rejected", "password is %s",
			"https://h/mcp/%s", "using access token %s now",
		} {
			for _, n := range []int{32, 40, 64} {
				text := key(n)
				if got := Scrub(fmt.Sprintf(format, text)); strings.Contains(got, text) {
					t.Errorf("Scrub shows %s", got)
				}
			}
		}
	}
}

// The values of fields and variables may stand on the next line, or on several.
func TestAValueBelowItsNameIsHidden(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"{\n  \"user\": \"notes\",\n  \"password\":\n    \"correct-horse\",\n  \"token\":\n    \"battery-staple\"\n}", "{\n  \"user\": \"notes\",\n  \"password\":\n    \"[hidden]\",\n  \"token\":\n    \"[hidden]\"\n}"},
		{"password:\n  correct-horse\nnext: 1", "password:\n  [hidden]\nnext: 1"},
		{"password: |\n  correct\n  horse\nnext: 1", "password: |\n  [hidden]\n  [hidden]\nnext: 1"},
		{"  api_key: >-\n    correct horse\n    battery\n  next: 1", "  api_key: >-\n    [hidden]\n    [hidden]\n  next: 1"},
		{"tokens:\n  - correct\n  - horse\nnext: 1", "tokens:\n  - [hidden]\n  - [hidden]\nnext: 1"},
		{"\"tokens\": [\n  \"correct\",\n  \"horse\"\n], \"n\": 1", "\"tokens\": [\n  \"[hidden]\",\n  \"[hidden]\"\n], \"n\": 1"},
		{"[notes] password:\n[notes]   correct-horse\n[notes] done", "[notes] password:\n[notes]   [hidden]\n[notes] done"},
		{"10:20:30 token:\n10:20:31   \"correct\"\n10:20:31 done", "10:20:30 token:\n10:20:31   \"[hidden]\"\n10:20:31 done"},
		{"API_KEY=\\\n  correct-horse next", "API_KEY=\\\n  [hidden] next"},
		{"password = '''\ncorrect\nhorse\n'''\nnext = 1", "password = '''\n[hidden]\n[hidden]\n'''\nnext = 1"},
		{"key: \"correct-horse\n  battery\" next", "key: \"[hidden]\n  [hidden]\" next"},
		{"read " + pem + " from disk", "read [hidden]\n[hidden]\n[hidden]\n[hidden] from disk"},
		{"using " + gh[:30] + "\n  " + gh[30:] + "\nnext", "using [hidden]\n  [hidden]\nnext"},
	} {
		got := Scrub(test.text)
		if got != test.want {
			t.Errorf("Scrub(%q)\n got %q\nwant %q", test.text, got, test.want)
		}
		if again := Scrub(got); again != got {
			t.Errorf("Scrub(%q) again = %q", got, again)
		}
	}
}

func TestSentencesThatEndInANameStay(t *testing.T) {
	for _, text := range []string{
		"Invalid token:\n    at parse (/app/index.js:3:4)\n    at main", "Missing API key:\n  set API_KEY in your environment", "Usage: x --token\n  --verbose  say more",
		"unknown key:\nmcpServers", "error: password:\n\nnext paragraph", "Options:\n  --api-key KEY\n  --port N", "env:\n  API_TOKEN: ${API_TOKEN}\n  PORT: 1",
		"password:\n  description: the password\n  type: string", "TypeError: bad token:\n  <html>\n", "expected -----BEGIN PRIVATE " + "KEY----- header\nin file /etc/x.pem\nand stopped",
	} {
		if got := Scrub(text); got != text {
			t.Errorf("Scrub(%q)\n  = %q", text, got)
		}
	}
}

func TestALongSecretIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for b.Len() < 12_000 {
		fmt.Fprintf(&b, "%d horse \x10", r.Uint64())
	}
	long := strings.TrimSpace(b.String())
	h := New(long)
	for name, text := range encodings(long) {
		if got := h.Text("before " + text + "\nafter"); len(got) > 1000 || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, "\nafter") {
			t.Errorf("%s: %d bytes are shown: %.200s", name, len(got), got)
		}
	}
}

func TestTheEndOfASecretIsTheWordAndNotTheBeginningOfAPrefix(t *testing.T) {
	if got, want := New("correct-horse-n").Text("it is correct-horse-\nx notes: n\n"), "it is [hidden]\nx notes: [hidden]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatWasMadeToTakeLongIsHidden(t *testing.T) {
	h := New(strings.Repeat("a", 4000) + "b")
	if got := h.Text(strings.Repeat("a", 1<<18)); len(got) > 1<<15 || !strings.HasSuffix(got, Mark) {
		t.Errorf("%d bytes are shown: …%s", len(got), got[max(0, len(got)-40):])
	}
}

func TestNoTextTakesLong(t *testing.T) {
	h := New(strings.Repeat("a", 4000)+"b", strings.Repeat("ab", 2000)+"c")
	for name, text := range map[string]string{
		"one letter": strings.Repeat("a", 1<<18), "two letters": strings.Repeat("ab", 1<<17), "lines": strings.Repeat("aaaa\n", 1<<15), "lines with blanks": strings.Repeat("a a a a\n ", 1<<14),
		"keys": strings.Repeat("key: 'a\n", 1<<13), "begins": strings.Repeat("-----BEGIN PRIVATE "+"KEY-----\n", 1<<11), "colons": strings.Repeat("token:\n", 1<<14), "quotes": strings.Repeat("\"token\": \"\n", 1<<13),
		"runs": strings.Repeat("a1B2c3D4-", 1<<14), "one line": strings.Repeat("token=x ", 1<<14), "addresses": strings.Repeat("http://a:b@c?d=e#", 1<<13), "escapes": strings.Repeat(`\`, 1<<17),
	} {
		began := time.Now()
		h.Text(text)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: %d bytes take %v", name, len(text), took)
		} else {
			t.Logf("%s: %d bytes take %v", name, len(text), took)
		}
	}
}

func TestLinesStayLines(t *testing.T) {
	for kind, value := range canaries {
		h := New(value)
		text := "a\n" + value + "\nb " + inLines(value, 6, "\n  ") + "\nc\n" + pem + "\nd\n"
		if got := h.Text(text); strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%s: %d lines became %d:\n%s", kind, strings.Count(text, "\n"), strings.Count(got, "\n"), got)
		}
	}
}

func TestTheQuickLookAtAMakersKeyMissesNone(t *testing.T) {
	alternatives := regexp.MustCompile(`[A-Za-z0-9_]{2,}[\[\]a-z]*`)
	source := shapes.maker().String()
	for _, group := range regexp.MustCompile(`\(\?:([^()]*)\)`).FindAllStringSubmatch(source, -1) {
		for _, begin := range strings.Split(group[1], "|") {
			if !mayBeMade(alternatives.FindString(begin) + "-0123456789abcdef") {
				t.Errorf("nobody looks at a key that begins with %s", begin)
			}
		}
	}
}

func BenchmarkABurst(b *testing.B) {
	line := "2026-11-14 10:20:30.123 INFO server: handled tools/call in 12 ms, path=/home/u/x id=550e8400-e29b-41d4-a716-446655440000\n"
	text := strings.Repeat(line, 1<<20/len(line))
	h := New()
	for i := range 20 {
		h.Know(fmt.Sprintf("SECRET_%d", i), fmt.Sprintf("%x", rand.Uint64())+url.QueryEscape(canary))
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		h.Text(text)
	}
}
