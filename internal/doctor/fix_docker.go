package doctor

import (
	"context"
	"slices"
	"strings"
)

// A dockerLine is a "docker run" of an entry.
type dockerLine struct {
	words []string
	// first and image are where the options of run begin and the image stands.
	first, image int
}

// dockerSwitches are the options of docker run that take no value.
var dockerSwitches = []string{
	"--detach", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only", "--publish-all",
	"--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet", "--disable-content-trust",
}

// shortSwitches are those that may be written together, as in -it.
const shortSwitches = "ditPq"

func (t *treatment) dockerRun() (dockerLine, bool) {
	if t.server == nil || t.server.Command.Path == nil {
		return dockerLine{}, false
	}
	words := argvOf(t.server)
	if name := t.base(words[0]); name != "docker" && name != "podman" {
		return dockerLine{}, false
	}
	first := slices.Index(words, "run") + 1
	if first < 2 {
		return dockerLine{}, false
	}
	d := dockerLine{words: words, first: first, image: len(words)}
	for i := first; i < len(words); i++ {
		w := words[i]
		switch {
		case !strings.HasPrefix(w, "-"):
			d.image = i
			return d, true
		case slices.Contains(dockerSwitches, w), strings.Contains(w, "="), isShort(w):
		case len(w) > 2 && w[1] != '-': // a value that sticks to its option, as in -eNAME
		default:
			i++ // its value
		}
	}
	return d, true
}

func isShort(w string) bool {
	return len(w) > 1 && w[0] == '-' && strings.Trim(w[1:], shortSwitches) == ""
}

// withFirst and withLast return the words with an option more, before or behind the others.
func (d dockerLine) withFirst(option string) []string {
	return slices.Insert(slices.Clone(d.words), d.first, option)
}

func (d dockerLine) withLast(options ...string) []string {
	return slices.Insert(slices.Clone(d.words), d.image, options...)
}

// passes reports whether a variable gets into the container.
func (d dockerLine) passes(name string) bool {
	options := d.words[d.first:d.image]
	for i, w := range options {
		value := ""
		switch {
		case (w == "-e" || w == "--env") && i+1 < len(options):
			value = options[i+1]
		case strings.HasPrefix(w, "--env="):
			value = strings.TrimPrefix(w, "--env=")
		case strings.HasPrefix(w, "-e") && len(w) > 2:
			value = w[2:]
		}
		if value == name || strings.HasPrefix(value, name+"=") {
			return true
		}
	}
	return false
}

func dockerDetached(_ context.Context, t *treatment) []Fix {
	d, ok := t.dockerRun()
	if !ok {
		return nil
	}
	var words []string
	for i, w := range d.words {
		option := i >= d.first && i < d.image
		switch {
		case option && (w == "-d" || w == "--detach" || w == "--detach=true"):
			continue
		case option && isShort(w):
			w = strings.ReplaceAll(w, "d", "")
		}
		words = append(words, w)
	}
	return t.fix("docker_no_detach", Auto, "remove -d: a container in the background cannot be spoken to", t.setLine(words...))
}

func dockerNotInteractive(_ context.Context, t *treatment) []Fix {
	d, ok := t.dockerRun()
	if !ok {
		return nil
	}
	return t.fix("docker_interactive", Auto, "add -i, without which docker closes standard input", t.setLine(d.withFirst("-i")...))
}

func dockerUnavailable(_ context.Context, t *treatment) []Fix {
	run := ""
	if t.os == "darwin" {
		run = "open -a Docker"
	}
	return []Fix{never("start_server", run, "start Docker, and look with docker info whether it answers")}
}
