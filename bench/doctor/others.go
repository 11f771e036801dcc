package main

import (
	"context"
)

// An otherTool is what somebody else offers for looking at one's servers.
type otherTool struct {
	name string
}

// otherSays is what such a tool said of a set-up.
type otherSays struct {
	Says    string  `json:"says"` // cause, symptom, nothing, healthy, n/a
	Exit    int     `json:"exit"`
	Secs    float64 `json:"seconds"`
	Secrets int     `json:"secretsShown"`
}

func (v *verdict) ask(ctx context.Context, o otherTool, e *examiner) {}

func (o options) others(ctx context.Context) ([]otherTool, error) { return nil, nil }
