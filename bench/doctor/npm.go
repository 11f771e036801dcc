package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// npm gives this world a registry of its own, with packages that the real npx
// installs and runs. The words are names of packages; "broken" leaves the first
// one half installed, as a time-out in the middle does; "canary:NAME" is a package
// that writes down that it was run; "library:NAME" has no program.
func (w *world) npm(ctx context.Context, t *tools, words string) error {
	if err := t.has("npx"); err != nil {
		return err
	}
	archives, bins := map[string][]byte{}, map[string]string{}
	for _, word := range strings.Fields(words) {
		name, canary := strings.CutPrefix(word, "canary:")
		name, library := strings.CutPrefix(name, "library:")
		if word == "broken" {
			continue
		}
		if !library {
			bins[name] = "index.js"
		}
		data, err := w.archive(name, bins[name], canary)
		if err != nil {
			return err
		}
		archives[name] = data
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name, file, isFile := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
		data, ok := archives[name]
		switch {
		case !ok:
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusNotFound)
			fmt.Fprint(rw, `{"error":"Not found"}`)
		case isFile && file != "":
			_, _ = rw.Write(data)
		default:
			_ = json.NewEncoder(rw).Encode(packument(name, bins[name], "http://"+r.Host, data))
		}
	}))
	w.closers = append(w.closers, func() error { server.Close(); return nil })
	w.words["NPM"] = server.URL
	rc := "registry=" + server.URL + "/\naudit=false\nfund=false\nupdate-notifier=false\nfetch-retries=0\n"
	return os.WriteFile(w.path("home/.npmrc"), []byte(rc), 0o600)
}

// archive makes the package: a script in two files that becomes the patient.
func (w *world) archive(name, bin string, canary bool) ([]byte, error) {
	start := fmt.Sprintf("const { spawn } = require('child_process');\nconst c = spawn(%q, [], { stdio: 'inherit' });\nc.on('exit', code => process.exit(code ?? 1));\n", w.words["PATIENT"])
	if canary {
		start = fmt.Sprintf("require('fs').appendFileSync(%q, %q);\n", w.words["JOURNAL"], "package "+name+"\n")
	}
	manifest, err := json.Marshal(map[string]any{"name": name, "version": "1.0.0", "bin": programs(name, bin)})
	if err != nil {
		return nil, err
	}
	files := [][2]string{
		{"package.json", string(manifest)},
		{"index.js", "#!/usr/bin/env node\nrequire('./lib/start.js');\n"},
		{"lib/start.js", start},
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	for _, f := range files {
		if err := a.WriteHeader(&tar.Header{Name: "package/" + f[0], Mode: 0o755, Size: int64(len(f[1]))}); err != nil {
			return nil, err
		}
		if _, err := a.Write([]byte(f[1])); err != nil {
			return nil, err
		}
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// programs are the commands of a package, of which a library has none.
func programs(name, bin string) map[string]string {
	if bin == "" {
		return nil
	}
	return map[string]string{name: bin}
}

func packument(name, bin, base string, archive []byte) any {
	one, all := sha1.Sum(archive), sha512.Sum512(archive)
	version := map[string]any{
		"name": name, "version": "1.0.0", "bin": programs(name, bin),
		"dist": map[string]string{
			"tarball": base + "/" + name + "/-/" + name + "-1.0.0.tgz", "shasum": hex.EncodeToString(one[:]),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(all[:]),
		},
	}
	return map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version}}
}

// otherCache is a folder of npx that has nothing to do with the set-up.
const otherCache = "home/.npm/_npx/0123456789abcdef/node_modules/other/keep.txt"

// npmReady takes the notes-taking npx out of the way, and breaks what is to be
// broken the way an interrupted installation does.
func (w *world) npmReady(ctx context.Context, t *tools, words string) error {
	for _, name := range []string{"npx", "npm"} {
		if err := os.Remove(w.path("bin/" + name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(w.path(otherCache)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(otherCache), []byte("keep\n"), 0o644); err != nil {
		return err
	}
	list := strings.Fields(words)
	if !slices.Contains(list, "broken") {
		return nil
	}
	if said, err := w.run(ctx, t.npx, "-y", list[0]); err != nil || said.exit != 0 {
		return fmt.Errorf("installing %s: %v: %s", list[0], err, said.text())
	}
	found, err := filepath.Glob(w.path("home/.npm/_npx/*/node_modules/" + list[0] + "/lib/start.js"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s is installed %d times: %v", list[0], len(found), err)
	}
	return os.Remove(found[0])
}

// cacheHarm says whether a folder of npx was removed that was not broken.
func (w *world) cacheHarm() []string {
	if w.words["NPM"] == "" {
		return nil
	}
	if _, err := os.Stat(w.path(otherCache)); err != nil {
		return []string{"another package's npx folder is gone"}
	}
	return nil
}

// nvm puts a Node where nvm keeps it: "VERSION" is the machine's own under that
// name, "old" a real one of 2021.
func (w *world) nvm(_ context.Context, t *tools, version string) error {
	node := t.node
	if version == "old" {
		var err error
		if node, err = t.oldNode(); err != nil {
			return fmt.Errorf("%w: %v", errVoid, err)
		}
		version = "v10.24.1"
	}
	bin := w.path("home/.nvm/versions/node/" + version + "/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	return os.Symlink(node, filepath.Join(bin, "node"))
}
