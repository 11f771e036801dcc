package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// modelMakers are the beginnings of the variables with which programs sign in to makers
// and hosts of language models, and to the agents that use them. Behind one of these, a
// name that says it is a secret is the key of a model: OPENAI_API_KEY is one and
// OPENAI_BASE_URL is not. A server has no business with them unless its own entry or the
// registry names one: that cannot be seen in an environment, so whoever knows it says so.
var modelMakers = []string{
	"AI21", "AI_GATEWAY", "ALIBABA_CLOUD_BAILIAN", "ANTHROPIC", "ANYSCALE", "ARK", "AZURE_AI", "AZURE_INFERENCE", "AZURE_OPENAI", "BAICHUAN", "BEDROCK",
	"CEREBRAS", "CHATGPT", "CLAUDE", "CODESTRAL", "CODEX", "COHERE", "COPILOT", "CURSOR", "DASHSCOPE", "DEEPINFRA", "DEEPSEEK", "FIREWORKS", "FIREWORKS_AI",
	"FRIENDLI", "GEMINI", "GITHUB_COPILOT", "GITHUB_MODELS", "GOOGLE_AI", "GOOGLE_GEMINI", "GOOGLE_GENAI", "GOOGLE_GENERATIVE_AI", "GROK", "GROQ", "HELICONE", "HF", "HUGGINGFACE",
	"HUGGINGFACEHUB", "HUGGING_FACE", "HYPERBOLIC", "INCEPTION", "KIMI", "LAMBDA_AI", "LITELLM", "META_LLAMA", "LLAMA", "MINIMAX", "MISTRAL", "MOONSHOT", "NEBIUS", "NOVITA",
	"NVIDIA", "NVIDIA_NIM", "OLLAMA", "OPENAI", "OPENCODE", "OPENROUTER", "PERPLEXITY", "PERPLEXITYAI", "PORTKEY", "PPLX", "QIANFAN", "QWEN", "REPLICATE", "REQUESTY", "SAMBANOVA",
	"SILICONFLOW", "STEPFUN", "TOGETHER", "TOGETHERAI", "TOGETHER_AI", "VENICE", "VERTEX", "VOLCENGINE", "VOYAGE", "WATSONX", "XAI", "YI", "ZAI", "ZHIPU", "ZHIPUAI",
}

// modelKeys are those that do not begin with a maker, or do not say that they are secret.
var modelKeys = []string{"ANTHROPIC_CUSTOM_HEADERS", "AWS_BEARER_TOKEN_BEDROCK", "CO_API_KEY", "GOOGLE_API_KEY"}

// PassedOn is the environment for a server that a client starts through us: what
// the client gave us, since a wrapped server's token arrives that way, less what
// is ours alone. also are names of keys to pass on all the same.
func PassedOn(environ []string, also ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "MCPMEND_") || IsModelKey(name) && !slices.Contains(also, name)
	})
}

// Withheld are the names of the variables that PassedOn leaves out because they are
// the keys of models.
func Withheld(environ []string, also ...string) []string {
	var out []string
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" && IsModelKey(name) && !slices.Contains(also, name) {
			out = append(out, name)
		}
	}
	return out
}

// IsModelKey reports whether a variable holds the key of a model by its name.
func IsModelKey(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains(modelKeys, name) {
		return true
	}
	return secret.Name(name) && slices.ContainsFunc(modelMakers, func(maker string) bool {
		return strings.HasPrefix(name, maker) && len(name) > len(maker) && name[len(maker)] == '_'
	})
}

// missed says of a server that failed naming a variable we kept from it how it would
// get that; "" if it named none.
func missed(withheld []string, outputs ...[]string) string {
	for _, name := range withheld {
		for _, lines := range outputs {
			if slices.ContainsFunc(lines, func(line string) bool { return hasWord(line, name) }) {
				return fmt.Sprintf("mcpmend run keeps %s from servers, since it is the key of a model; to pass it on, put --pass-env %s behind run", name, name)
			}
		}
	}
	return ""
}

// hasWord reports whether a text has a name in it, and not as part of a longer one.
func hasWord(text, name string) bool {
	part := func(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
	for from := 0; ; from++ {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		from += i
		end := from + len(name)
		if (from == 0 || !part(text[from-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
	}
}

// harmless are the variables programs need to find their files and no more.
var harmless = []string{
	"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA",
	"PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// Configured is the environment for a server that a gateway starts: what its
// entry says, and of ours only what is on a short list.
func Configured(environ, entry []string) []string {
	out := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return !slices.Contains(harmless, name)
	})
	return append(out, entry...)
}

// secretsIn hides the secrets of an environment and a command line in what a server
// writes: its last words go to a model, and a server may well print the token it was given.
func secretsIn(environ, command []string) *secret.Hider {
	h := secret.New()
	h.AddEnviron(environ)
	h.AddArgs(command)
	return h
}

// lookPathIn finds a program in the PATH of the given environment.
func lookPathIn(name string, environ []string) (string, error) {
	path, found := "", false
	for _, e := range environ {
		key, value, _ := strings.Cut(e, "=")
		if key == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(key, "PATH") {
			path, found = value, true
		}
	}
	if environ == nil || found && path == os.Getenv("PATH") {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			continue // the current directory is no place to find a server by accident
		}
		if full, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return full, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
