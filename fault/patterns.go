package fault

import (
	"slices"
	"sync"
)

// How sure a phrase makes us when it is all we have.
const (
	// plain: the phrase names the cause, and hardly ever means anything else.
	plain = 0.9
	// likely: the phrase names the cause, but other programs use it for other things.
	likely = 0.75
	// hint: the phrase fits several causes, and this one is the most frequent.
	hint = 0.6
	// narrow: like plain, for a phrase that contains, or comes along with, a more
	// general one of another kind and must win over it.
	narrow = 0.95
	// enough is what a diagnosis needs; below it the kind stays Unknown.
	enough = 0.5
)

// patterns is every phrase by which a message is recognised. How a phrase is
// written is told in words.go. To add one: put it in the row of its kind, and a
// real message in testdata/messages.txt that shows it. Leave out what only says
// that something broke ("connection closed", "fetch failed"): those have a dozen
// causes, and to name one of them would be to guess.
var patterns = slices.Concat(startPhrases, reachPhrases, callPhrases)

// row is phrases that speak for one kind and are equally telling.
type row struct {
	kind    Kind
	sure    float64
	phrases []string
}

// index holds the phrases by their first plain word. It is made for the first
// diagnosis, since most processes never need one.
var index = sync.OnceValue(func() map[string][]*rule {
	m := make(map[string][]*rule)
	for _, row := range patterns {
		for _, source := range row.phrases {
			p, err := parsePhrase(source)
			if err != nil {
				panic(err) // a typing error in one of the tables, which every test finds
			}
			r := &rule{kind: row.kind, sure: row.sure, phrase: p}
			for _, w := range p.steps[0].words {
				m[w] = append(m[w], r)
			}
		}
	}
	return m
})

type rule struct {
	kind   Kind
	sure   float64
	phrase phrase
}
