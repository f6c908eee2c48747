package ckks

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// The arithmetic of 128-bit integers beside that of big ones, also at the edges.
func TestWideArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := must[*Machine](t)(MachineOf(testSet, true))
	list := []wide{{}, {low: 1}, wide{low: 1}.negated(), {low: 1 << 63}, {high: 1}, wide{high: 1}.negated()}
	for range 2000 {
		x := wide{high: rng.Uint64() >> 11, low: rng.Uint64()}
		list = append(list, x, x.negated(), wide{low: rng.Uint64() >> rng.IntN(64)})
	}
	for i, x := range list {
		value := x.bigInt()
		for _, q := range m.Moduli[:3] {
			modulus := new(big.Int).SetUint64(q)
			if want := new(big.Int).Mod(value, modulus).Uint64(); x.residue(q) != want {
				t.Fatalf("%v modulo %d is %d, not %d", value, q, x.residue(q), want)
			}
		}
		y := list[(i*7)%len(list)]
		if sum := new(big.Int).Add(value, y.bigInt()); sum.Cmp(x.add(y).bigInt()) != 0 {
			t.Fatalf("%v + %v is not %v", value, y.bigInt(), x.add(y).bigInt())
		}
		for level := range m.top + 1 {
			if !rounds(m, x, level) {
				t.Fatalf("%v is not taken to the scale of the highest level from that of %d", value, level)
			}
		}
	}
}

// rounds compares with the exact quotient of scales; the nearest integer or, where
// it lies in the middle, either.
func rounds(m *Machine, x wide, level int) bool {
	exact := new(big.Float).SetPrec(400).SetInt(x.bigInt())
	exact.Mul(exact, &m.scales[m.top].Value)
	exact.Quo(exact, &m.scales[level].Value)
	got := new(big.Float).SetPrec(400).SetInt(m.again(level).of(x).bigInt())
	distance, _ := got.Sub(got, exact).Float64()
	return distance < 0.501 && distance > -0.501
}

func TestLiftIsTheIntegerAroundZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := must[*Machine](t)(MachineOf(testSet, true))
	for level := range 3 {
		p := ring.NewPoly(m.n, level)
		modulus := big.NewInt(1)
		for _, q := range m.Moduli[:level+1] {
			modulus.Mul(modulus, new(big.Int).SetUint64(q))
		}
		half := new(big.Int).Rsh(modulus, 1)
		for i := range m.n {
			value := new(big.Int).Mod(wide{high: rng.Uint64() >> 2, low: rng.Uint64()}.bigInt(), modulus)
			if i == 0 {
				value.Set(half)
			} else if i == 1 {
				value.Add(half, big.NewInt(1))
			}
			for l, q := range m.Moduli[:level+1] {
				p.Coeffs[l][i] = new(big.Int).Mod(value, new(big.Int).SetUint64(q)).Uint64()
			}
			if value.Cmp(half) > 0 {
				value.Sub(value, modulus)
			}
			if got := m.lift(p, i).bigInt(); got.Cmp(value) != 0 {
				t.Fatalf("at level %d %v was lifted to %v", level, value, got)
			}
		}
	}
}
