package doctor

import (
	"strings"

	"github.com/mcpmend/mcpmend/internal/machine"
)

// envFile are the variables of the file that the entry names for them.
func (x *expansion) envFile() [][2]string {
	if x.server.EnvFile.Text == "" {
		return nil
	}
	at := site{environ: *x.env, dir: x.doctor.System.Project}
	return readEnvFile(at.absolute(x.expand("envFile", "", x.server.EnvFile)))
}

// readEnvFile reads the lines NAME=value of a file; a file that cannot be read has
// none.
func readEnvFile(path string) [][2]string {
	text, err := machine.ReadPlain(path, 1<<20)
	if err != nil {
		return nil
	}
	var out [][2]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out = append(out, [2]string{name, value})
	}
	return out
}
