package main

import (
	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

func ownSet(seed uint64, quick bool) (*scorer, []toolset.Case) {
	return &scorer{cache: arguments.NewCache(0)}, nil
}
