package app

import (
	"context"
	"errors"

	"github.com/mcpmend/mcpmend/internal/advisor"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// ModelOptions say which model may be asked about arguments that cannot be mended.
// Without a name nobody is asked.
type ModelOptions struct {
	Name     string
	Provider string // "openai", "anthropic", or "sampling" for the client's own
	URL      string
	Key      string
}

var errNoCorrection = errors.New("the model has no correction")

// advise fills in whom the guard asks: a model of the user's choice, or the model
// that each client lends. Nobody where none is named.
func advise(to *guard.ArgumentOptions, o ModelOptions, given *secret.Hider) error {
	if o.Name == "" {
		return nil
	}
	options := advisor.Options{
		Provider: advisor.Provider(o.Provider),
		BaseURL:  o.URL,
		Model:    o.Name,
		Key:      advisor.Secret(o.Key),
		Given:    given.Unnamed(),
	}
	if options.Provider == advisor.Sampling {
		to.AdviseBy = func(sample func(context.Context, string) (string, error)) func(context.Context, guard.Advice) ([]byte, error) {
			own := options
			own.Sample = sample
			a, err := advisor.New(own)
			if err != nil {
				return nil
			}
			return questions(a)
		}
		return nil
	}
	a, err := advisor.New(options)
	if err != nil {
		return err
	}
	to.Advise = questions(a)
	return nil
}

// questions puts what the guard asks into the advisor's words.
func questions(a *advisor.Advisor) func(context.Context, guard.Advice) ([]byte, error) {
	return func(ctx context.Context, q guard.Advice) ([]byte, error) {
		answer, err := a.Correct(ctx, advisor.Question{
			Tool: q.Tool, SchemaPart: q.Schema, Arguments: q.Arguments, Error: q.Error,
			Kind: q.Kind, Valid: q.Valid, MayAdd: q.Known, MayChange: q.Wrong,
		})
		if err != nil {
			return nil, err
		}
		if !answer.Corrected {
			return nil, errNoCorrection
		}
		return answer.Arguments, nil
	}
}
