package product

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The vectorised transform gives Lattigo's results, also at the edges of the range.
func TestTransformsEqualLattigos(t *testing.T) {
	if !hasIFMA {
		t.Skip("this processor has no 52-bit vector multiplication; Lattigo's transform is used")
	}
	rng := rand.New(rand.NewPCG(31, 32))
	for _, name := range []string{"wide4", "deep8"} {
		r := mustGet(name)
		for l, q := range r.Moduli {
			for round := range 3 {
				p := make([]uint64, r.N)
				for i := range p {
					p[i] = rng.Uint64N(q)
					if round == 1 {
						p[i] = q - 1
					}
				}
				original, want := slices.Clone(p), slices.Clone(p)
				r.sub[l].NTT(want, want)
				r.twiddles[l].ntt(p)
				if !slices.Equal(p, want) {
					t.Fatalf("%s: forward transform modulo %x", name, q)
				}
				r.twiddles[l].intt(p)
				if !slices.Equal(p, original) {
					t.Fatalf("%s: backward transform modulo %x", name, q)
				}
			}
		}
	}
}

// Both ways of adding up products agree.
func TestVectorisedSumsOfProducts(t *testing.T) {
	if !hasIFMA {
		t.Skip("this processor has no 52-bit vector multiplication")
	}
	rng := rand.New(rand.NewPCG(33, 34))
	r := mustGet("wide4")
	var plain, vector accumulators
	for range 100 {
		var x, y, b [tile]uint64
		for i := range x {
			x[i], y[i], b[i] = rng.Uint64N(r.Moduli[0]), r.Moduli[0]-1, rng.Uint64N(r.Moduli[0])
		}
		accumulate1(plain.high0[:], plain.low0[:], plain.high1[:], plain.low1[:], x[:], y[:], b[:])
		accumulateIFMA(&vector.high0[0], &vector.low0[0], &vector.high1[0], &vector.low1[0], &x[0], &y[0], &b[0], tile)
	}
	vector.join()
	got, want := make([]uint64, tile), make([]uint64, tile)
	r.reduceTile(got, &vector.high1, &vector.low1, 0)
	r.reduceTile(want, &plain.high1, &plain.low1, 0)
	if !slices.Equal(got, want) {
		t.Fatal("second sums differ")
	}
	r.reduceTile(got, &vector.high0, &vector.low0, 0)
	r.reduceTile(want, &plain.high0, &plain.low0, 0)
	if !slices.Equal(got, want) {
		t.Fatal("first sums differ")
	}
}
