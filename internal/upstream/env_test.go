package upstream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAModelsKeyIsPassedOnOnlyWhenItIsNamed(t *testing.T) {
	environ := []string{"HOME=/h", "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=a", "MCPMEND_TOKEN=t", "GITHUB_TOKEN=g"}
	if diff := cmp.Diff([]string{"HOME=/h", "GITHUB_TOKEN=g"}, PassedOn(environ)); diff != "" {
		t.Error(diff)
	}
	want := []string{"HOME=/h", "OPENAI_API_KEY=k", "GITHUB_TOKEN=g"}
	if diff := cmp.Diff(want, PassedOn(environ, "OPENAI_API_KEY", "MCPMEND_TOKEN")); diff != "" {
		t.Error(diff)
	}
}
