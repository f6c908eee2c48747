package ckks

import (
	"math"
	"testing"
)

// TestOperations runs everything that a program may do with three parties, at the
// paper's size and at a small one, against plain numbers.
func TestOperations(t *testing.T) {
	for _, set := range []uint8{testSet, paperSet} {
		t.Run(sets[set/129].Name, func(t *testing.T) { operations(t, groupOf(t, set)) })
	}
}

func operations(t *testing.T, g *group) {
	slots, k, ok := g.m.Slots(), g.keys, must[*Ciphertext](t)
	a, b := numbers(1, slots, 2), numbers(2, slots, 2)
	x, y := g.encrypt(t, a), g.encrypt(t, b)
	near(t, "fresh", g.open(t, x), 3e-7, func(i int) float64 { return a[i] })
	near(t, "sum", g.open(t, ok(k.Sum([]*Ciphertext{x, y, x}))), 1e-6, func(i int) float64 { return 2*a[i] + b[i] })
	near(t, "difference", g.open(t, ok(k.Subtract(x, y))), 1e-6, func(i int) float64 { return a[i] - b[i] })
	near(t, "plus", g.open(t, ok(k.Plus(x, b))), 3e-7, func(i int) float64 { return a[i] + b[i] })
	near(t, "scaled", g.open(t, ok(k.Scaled(x, -0.3))), 1e-6, func(i int) float64 { return -0.3 * a[i] })
	near(t, "scaled by an integer", g.open(t, ok(k.Scaled(x, -3))), 1e-6, func(i int) float64 { return -3 * a[i] })
	near(t, "rerandomised", g.open(t, ok(k.Rerandomised(x, g.seed(), 0))), 1e-6, func(i int) float64 { return a[i] })
	near(t, "lowered", g.open(t, ok(k.Lowered(x, 1))), 1e-6, func(i int) float64 { return a[i] })

	product := ok(k.Inner([]Pair{{x, Factor{Secret: y}}}, true))
	near(t, "product", g.open(t, product), 2e-6, func(i int) float64 { return a[i] * b[i] })
	clear := must[*Encoded](t)(Encode(g.m, b, g.m.top))
	near(t, "weighted", g.open(t, ok(k.Inner([]Pair{{x, Factor{Clear: clear}}}, true))), 2e-6,
		func(i int) float64 { return a[i] * b[i] })
	low := ok(k.Lowered(y, 5))
	pairs := []Pair{{x, Factor{Secret: low}}, {y, Factor{Secret: product}}, {low, Factor{Secret: low}},
		{x, Factor{Clear: must[*Encoded](t)(Encode(g.m, a, 5))}}}
	for _, lazy := range []bool{true, false} {
		inner := ok(k.Inner(pairs, lazy))
		near(t, "inner", g.open(t, inner), 1e-5, func(i int) float64 { return a[i]*b[i] + a[i]*b[i]*b[i] + b[i]*b[i] + a[i]*a[i] })
		if inner.Level() != 4 {
			t.Errorf("an inner product ended at level %d", inner.Level())
		}
	}
	for _, steps := range []int{1, 3, -1, slots - 5, slots} {
		near(t, "rotation", g.open(t, ok(k.Rotated(x, steps))), 1e-6, func(i int) float64 { return a[((i+steps)%slots+slots)%slots] })
	}
	deep := x
	for range g.m.top - 2 {
		deep = ok(k.Inner([]Pair{{deep, Factor{Clear: must[*Encoded](t)(Encode(g.m, []float64{0.5, -0.5}, deep.Level()))}}}, true))
	}
	fresh := g.refreshed(t, deep)
	near(t, "refreshed", g.open(t, fresh), 1e-6, func(i int) float64 {
		if i < 2 {
			return a[i] * math.Pow(0.5, 7) * []float64{1, -1}[i]
		}
		return 0
	})
	if deep.Level() != 2 || fresh.Level() != g.m.top {
		t.Errorf("a refresh from level %d ended at %d", deep.Level(), fresh.Level())
	}
	near(t, "refreshed from above", g.open(t, g.refreshed(t, ok(k.Lowered(x, 6)))), 1e-6, func(i int) float64 { return a[i] })
}
