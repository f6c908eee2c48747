package additive

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func signed(low, middle, high uint64) *big.Int {
	x := new(big.Int).SetInt64(int64(high))
	x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(middle))
	return x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(low))
}

// edges are limbs at which carries and signs turn.
var edges = []uint64{0, 1, 2, 3, 26, 27, 28, 1 << 10, 1 << 62, 1<<63 - 1, 1 << 63, ^uint64(0) - 3, ^uint64(0) - 2, ^uint64(0) - 1, ^uint64(0)}

func TestResiduesAreThoseOfTheSignedValue(t *testing.T) {
	for _, below := range []uint64{1, 3} {
		p := new(big.Int).SetUint64(-below)
		for _, low := range edges {
			for _, middle := range edges {
				for _, high := range edges {
					want := new(big.Int).Mod(signed(low, middle, high), p).Uint64()
					if got := residueOf(low, middle, high, below); got != want {
						t.Fatalf("%#x %#x %#x modulo 2^64-%d is %#x, not %#x", low, middle, high, below, got, want)
					}
				}
			}
		}
	}
}

func TestASumComesBackFromItsResidues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	first := new(big.Int).Lsh(big.NewInt(1), 74)
	limit := new(big.Int).Lsh(big.NewInt(1), 200) // 1024 values of 2^190
	check := func(s *big.Int) {
		t.Helper()
		low := wordsOf(new(big.Int).Mod(s, first), 2)
		r1 := new(big.Int).Mod(s, new(big.Int).SetUint64(moduli[1].p)).Uint64()
		r2 := new(big.Int).Mod(s, new(big.Int).SetUint64(moduli[2].p)).Uint64()
		l, m, h := fromResidues(low[0], uint16(low[1]), r1, r2)
		want := wordsOf(new(big.Int).Mod(s, new(big.Int).Lsh(big.NewInt(1), 192)), 3)
		if l != want[0] || m != want[1] || h != want[2] {
			t.Fatalf("%v came back as %#x %#x %#x, not %#x", s, l, m, h, want)
		}
	}
	for _, s := range []int64{0, 1, -1, 1 << 62, -1 << 62} {
		check(big.NewInt(s))
	}
	check(limit)
	check(new(big.Int).Neg(limit))
	for range 1000 {
		s := signed(rng.Uint64(), rng.Uint64(), rng.Uint64())
		check(s.Rsh(s, uint(rng.UintN(190))))
	}
}

func TestAResidueTravelsAndOpens(t *testing.T) {
	for k := 1; k < limbs; k++ {
		p := moduli[k].p
		for _, r := range []uint64{0, 1, 2, p / 2, p - 2, p - 1} {
			var sum turn
			for range 3 { // three summands wrap at p
				sum.addMultiple(r, &moduli[k].fraction)
			}
			want := new(big.Int).Mul(new(big.Int).SetUint64(r), big.NewInt(3))
			want.Mod(want, new(big.Int).SetUint64(p))
			if got, sound := sum.residue(p); got != want.Uint64() || !sound {
				t.Fatalf("3·%#x modulo %#x opens to %#x, %v", r, p, got, sound)
			}
			sum[5] += 1 // 2^-64: a whole step; a third of it is no residue
			sum.addMultiple(1, &[6]uint64{0, 0, 0, 0, 0x5555555555555555, 0})
			if _, sound := sum.residue(p); sound {
				t.Fatal("a third of a step passed for a residue")
			}
		}
	}
}
