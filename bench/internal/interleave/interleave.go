// Package interleave compares variants of a thing on a machine that is never quiet.
//
// Each variant is measured in many short blocks, taken in turns, and only blocks of
// the same round are compared with each other: what disturbs a round disturbs all
// variants in it. The answer is the median over the rounds, with an interval. One
// variant should be there twice; what the two differ by is what the run cannot see.
package interleave

import (
	"errors"
	"math"
	"slices"
)

// MinRounds is the fewest rounds that say something.
const MinRounds = 20

// Rounds measures each variant once per round. The order changes from round to
// round so that each variant follows each other one as often, and a variant that
// warms a cache does not always help the same neighbour.
func Rounds(n int, variants []func() error) error {
	if n < MinRounds {
		return errors.New("interleave: too few rounds")
	}
	for round := range n {
		for i := range variants {
			at := (i + round/2) % len(variants)
			if round%2 == 1 {
				at = len(variants) - 1 - at
			}
			if err := variants[at](); err != nil {
				return err
			}
		}
	}
	return nil
}

// An Estimate is a median and the interval that holds the true median with 95 %
// confidence, whatever the distribution.
type Estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Ratio estimates a/b from the blocks of the same rounds.
func Ratio(a, b []float64) Estimate {
	return estimate(a, b, func(x, y float64) float64 { return x / y })
}

// Difference estimates a-b from the blocks of the same rounds.
func Difference(a, b []float64) Estimate {
	return estimate(a, b, func(x, y float64) float64 { return x - y })
}

// Median estimates the median of one series.
func Median(a []float64) Estimate { return summarize(slices.Clone(a)) }

func estimate(a, b []float64, op func(x, y float64) float64) Estimate {
	if len(a) != len(b) {
		panic("interleave: series of different length")
	}
	paired := make([]float64, len(a))
	for i := range a {
		paired[i] = op(a[i], b[i])
	}
	return summarize(paired)
}

func summarize(values []float64) Estimate {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return Estimate{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	lo := outer(n)
	return Estimate{
		Median: (values[(n-1)/2] + values[n/2]) / 2,
		Low:    values[lo],
		High:   values[n-1-lo],
	}
}

// outer is the index of the value that bounds the interval from below: as many
// values lie below the median as a fair coin shows heads, and this few in at most 2.5 %
// of cases.
func outer(n int) int {
	k, p := 0, math.Pow(0.5, float64(n))
	for sum := p; sum <= 0.025; sum += p {
		k++
		p *= float64(n-k+1) / float64(k)
	}
	return max(0, k-1)
}

// Tolerance is how far a variant may differ from itself before a run is void.
const Tolerance = 0.10

// Void says that the ratio of a variant to itself is too far from 1 for the run
// to be believed.
func Void(self Estimate) bool { return !(math.Abs(self.Median-1) <= Tolerance) }
