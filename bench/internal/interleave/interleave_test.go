package interleave

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestIntervalBoundsAreThoseOfTheSignTest(t *testing.T) {
	// Published tables give the r-th smallest and largest value, counted from 1.
	for n, r := range map[int]int{6: 1, 10: 2, 20: 6, 24: 7, 30: 10, 40: 14} {
		if got := outer(n) + 1; got != r {
			t.Errorf("%d values: interval begins at value %d, want %d", n, got, r)
		}
	}
}

func TestRatioSeesThroughNoiseThatARoundShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a, b []float64
	for range 24 {
		noise := 1 + 9*rng.Float64() // a machine up to ten times slower
		a = append(a, 3*noise*(1+0.02*rng.Float64()))
		b = append(b, 2*noise*(1+0.02*rng.Float64()))
	}
	got := Ratio(a, b)
	if got.Median < 1.47 || got.Median > 1.53 || got.Low > 1.5 || got.High < 1.5 {
		t.Errorf("Ratio = %+v, want 1.5 inside a narrow interval", got)
	}
	if Void(got) != true || Void(Ratio(a, a)) != false {
		t.Errorf("Void: a ratio of 1.5 to itself must void the run, 1 must not")
	}
}

func TestEveryVariantIsMeasuredOncePerRoundInEveryPlace(t *testing.T) {
	const variants, rounds = 4, 24
	var order []int
	var run []func() error
	for v := range variants {
		run = append(run, func() error { order = append(order, v); return nil })
	}
	if err := Rounds(rounds, run); err != nil {
		t.Fatal(err)
	}
	places := map[[2]int]int{} // variant and place → times
	for round := range rounds {
		block := order[round*variants : (round+1)*variants]
		for place, v := range block {
			places[[2]int{v, place}]++
		}
		if got := slices.Sorted(slices.Values(block)); !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Fatalf("round %d measured %v", round, block)
		}
	}
	for v := range variants {
		for place := range variants {
			if got := places[[2]int{v, place}]; got != rounds/variants {
				t.Errorf("variant %d was in place %d %d times, want %d", v, place, got, rounds/variants)
			}
		}
	}
}

func TestTooFewRoundsAreRefused(t *testing.T) {
	if err := Rounds(MinRounds-1, nil); err == nil {
		t.Error("Rounds took too few rounds")
	}
}
