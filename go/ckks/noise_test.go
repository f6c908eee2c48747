package ckks

import (
	"math"
	"testing"
)

const (
	assumedStep = 1.0 / (1 << 24) // NOISE in paper/intervals.py: of a number after a step, in the simulation
	assumedOpen = 1.0 / (1 << 26) // BITS in paper/determined.py: no opening is more precise than this
)

// TestNoiseAtThePapersSize measures the standard deviation of what ciphertexts add to
// numbers between -1 and 1, with three parties, beside what the protocol assumes:
// the simulation of intervals must not take it for smaller than it is.
func TestNoiseAtThePapersSize(t *testing.T) {
	g := groupOf(t, paperSet)
	k, ok, slots := g.keys, must[*Ciphertext](t), g.m.Slots()
	a, b := numbers(1, slots, 1), numbers(2, slots, 1)
	x, y := g.encrypt(t, a), g.encrypt(t, b)
	clear := must[*Encoded](t)(Encode(g.m, b, g.m.top))
	same := func(i int) float64 { return a[i] }
	both := func(i int) float64 { return a[i] * b[i] }
	turned := func(i int) float64 { return a[(i+1)%slots] }
	low := ok(k.Lowered(x, g.m.RefreshLevel))
	deep, want := x, append([]float64{}, a...)
	for range g.m.top - g.m.RefreshLevel { // as many products as there are between two refreshes
		deep = ok(k.Inner([]Pair{{deep, Factor{Secret: y}}}, true))
		for i := range want {
			want[i] *= b[i]
		}
	}
	for _, row := range []struct {
		name  string
		found []float64
		due   func(int) float64
	}{
		{"fresh", g.open(t, x), same},
		{"product of ciphertexts", g.open(t, ok(k.Inner([]Pair{{x, Factor{Secret: y}}}, true))), both},
		{"product with clear numbers", g.open(t, ok(k.Inner([]Pair{{x, Factor{Clear: clear}}}, true))), both},
		{"seven products", g.open(t, deep), func(i int) float64 { return want[i] }},
		{"rotation", g.open(t, ok(k.Rotated(x, 1))), turned},
		{"re-randomised", g.open(t, ok(k.Rerandomised(x, g.seed(), 0))), same},
		{"refresh", g.open(t, g.refreshed(t, low)), same},
	} {
		if off := deviation(row.found, row.due); off > assumedStep {
			t.Errorf("%s: noise of 2^%.1f, 2^%.1f is assumed", row.name, math.Log2(off), math.Log2(assumedStep))
		} else {
			t.Logf("%-28s 2^%.1f", row.name, math.Log2(off))
		}
	}
	const bits = 14 // FLOODING_BITS in secret_matrices/slots/steps.py
	off := deviation(g.openFlooded(t, x, bits), same)
	t.Logf("%-28s 2^%.1f", "opened with flooding", math.Log2(off))
	if off < assumedOpen {
		t.Errorf("an opening is precise to 2^%.1f, more than is assumed", math.Log2(off))
	}
}

func deviation(found []float64, due func(int) float64) float64 {
	var squares float64
	for i, value := range found {
		squares += (value - due(i)) * (value - due(i))
	}
	return math.Sqrt(squares / float64(len(found)))
}
