package cli

import "github.com/mcpmend/mcpmend/internal/secret"

// hide takes the secrets out of a text before it is shown.
func hide(text string) string { return secret.Scrub(text) }
