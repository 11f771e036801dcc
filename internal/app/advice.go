package app

import (
	"context"
	"errors"

	"github.com/mcpmend/mcpmend/internal/advisor"
	"github.com/mcpmend/mcpmend/internal/guard"
)

// ModelOptions say which model may be asked about arguments that cannot be mended.
// Without a name nobody is asked.
type ModelOptions struct {
	Name     string
	Provider string // "openai" or "anthropic"
	URL      string
	Key      string
}

var errNoCorrection = errors.New("the model has no correction")

// adviseWith gives the guard its question to a model, nil where none is configured.
func adviseWith(o ModelOptions) (func(context.Context, guard.Advice) ([]byte, error), error) {
	if o.Name == "" {
		return nil, nil
	}
	a, err := advisor.New(advisor.Options{
		Provider: advisor.Provider(o.Provider),
		BaseURL:  o.URL,
		Model:    o.Name,
		Key:      advisor.Secret(o.Key),
	})
	if err != nil {
		return nil, err
	}
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
	}, nil
}
