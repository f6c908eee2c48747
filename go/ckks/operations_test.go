package ckks

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestOperations runs everything that a program may do with three parties, at the
// paper's size and at a small one, against plain numbers.
func TestOperations(t *testing.T) {
	for _, set := range []uint8{testSet, paperSet} {
		t.Run(findName(set), func(t *testing.T) { operations(t, groupOf(t, set)) })
	}
}

func findName(set uint8) string {
	for _, row := range sets {
		if row.ID == set {
			return row.Name
		}
	}
	return ""
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
	series := Chebyshev{Low: -2, High: 3, Coefficients: numbers(3, 32, 1)}
	image := ok(k.Polynomial(x, series))
	near(t, "polynomial", g.open(t, image), 1e-4, func(i int) float64 { return clenshaw(series, a[i]) })
	if image.Level() != g.m.top-6 {
		t.Errorf("a polynomial of degree 31 ended at level %d", image.Level())
	}
	near(t, "opened with flooding", g.openFlooded(t, x, flooding), 1e-4, func(i int) float64 { return a[i] })
	near(t, "handed over", g.handedOver(t, ok(k.Lowered(x, 3))), 1e-4, func(i int) float64 { return a[i] })
	near(t, "through shares", g.open(t, g.throughShares(t, ok(k.Lowered(x, 3)))), 1e-6, func(i int) float64 { return a[i] })
}

// clenshaw is the series in plain numbers.
func clenshaw(series Chebyshev, x float64) float64 {
	y := (2*x - series.Low - series.High) / (series.High - series.Low)
	var one, two float64
	for i := len(series.Coefficients) - 1; i > 0; i-- {
		one, two = series.Coefficients[i]+2*y*one-two, one
	}
	return series.Coefficients[0] + y*one - two
}

// handedOver is what a receiver outside of the group reads.
func (g *group) handedOver(t *testing.T, x *Ciphertext) []float64 {
	receiver := must[*Secret](t)(NewSecret(g.m, label("receiver")))
	public := make([]byte, must[int](t)(Size(g.m.ID, KindPublic, g.m.top, 0, true)))
	common := label("receiver's common")
	check(t, receiver.KeyPart(public, KindPublic, 0, common, label("error"), nil))
	handed := must[*Receiver](t)(NewReceiver(g.m, common, public))
	total := g.total(t, KindSwitching, x.Level(), flooding, func(i int, out []byte) error {
		return g.secrets[i].SwitchingPart(out, x, handed, label("switching", i), flooding, g.m.Slots())
	})
	message := make([]byte, len(total))
	check(t, Switched(message, x, total))
	values := make([]float64, g.m.Slots())
	check(t, receiver.ReadSwitched(message, values))
	if g.secrets[0].ReadSwitched(message, values) == nil {
		t.Error("another key read what was handed over")
	}
	return values
}

// throughShares takes a ciphertext into shares and back; the first party takes the public share along.
func (g *group) throughShares(t *testing.T, x *Ciphertext) *Ciphertext {
	shares := make([][]byte, len(g.secrets)+1)
	for i := range shares {
		shares[i] = make([]byte, 8*ShareWords*g.m.Slots())
	}
	total := g.total(t, KindShare, x.Level(), 0, func(i int, out []byte) error {
		return g.secrets[i].SharePart(out, shares[i], x, label("share", i))
	})
	public := shares[len(g.secrets)]
	check(t, PublicShare(public, x, total, len(g.secrets)))
	for at := 0; at < len(public); at += 16 {
		sum := wideAt(public[at:]).add(wideAt(shares[0][at:]))
		binary.LittleEndian.PutUint64(shares[0][at:], sum.low)
		binary.LittleEndian.PutUint64(shares[0][at+8:], sum.high)
	}
	common := label("inputs")
	inputs := g.total(t, KindInput, g.m.top, 0, func(i int, out []byte) error {
		return g.secrets[i].InputPart(out, shares[i], common, label("input", i))
	})
	return must[*Ciphertext](t)(FromInputs(g.m, inputs, common))
}

func wideAt(data []byte) wide {
	return wide{low: binary.LittleEndian.Uint64(data), high: binary.LittleEndian.Uint64(data[8:])}
}
