package doctor

import (
	"context"
	"strings"
)

func (t *treatment) dockerRun() (dockerLine, bool) { return dockerRun(t.argv()) }

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
