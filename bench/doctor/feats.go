package main

import (
	"context"
	"math/rand/v2"
)

func feats(ctx context.Context, t *tools, dir string, random *rand.Rand) []feat { return nil }
