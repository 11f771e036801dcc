package main

import "context"

func cycles(ctx context.Context, w *world) ([]finding, error) { return nil, nil }
