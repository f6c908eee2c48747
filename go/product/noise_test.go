package product

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// Noise of a product stays below its bound and is not absurdly smaller.
func TestNoiseBoundHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, parties := range []int{2, 6, MaxParties} {
		g := newGroup(t, "wide4", parties)
		y := Layout{16, 92, 44, 16, 23, 22, false}
		var lefts, rights []*Matrix
		for range parties {
			lefts = append(lefts, NewMatrix(16, 92, 1))
			rights = append(rights, randomMatrix(rng, 92, 44, 20))
		}
		sum := g.product(g.encrypt(lefts, nil, 0, y), rights, nil)
		norm := new(big.Float)
		total := sumOf(rights)
		for j := range total {
			for _, value := range total[j][:22] {
				f := new(big.Float).SetInt(value)
				norm.Add(norm, f.Mul(f, f))
			}
		}
		rightBits := norm.Sqrt(norm).MantExp(nil)
		bound := g.ring.NoiseBits(parties, rightBits)
		largest := 0
		for _, value := range decrypt(g, sum) {
			largest = max(largest, value.BitLen())
		}
		if largest > bound || largest < bound-6 {
			t.Fatalf("%d parties: noise of %d bits, bound %d", parties, largest, bound)
		}
	}
}

// decrypt opens a product with all secrets, without masks: for tests only.
func decrypt(g *group, sum *ProductSum) []*big.Int {
	r, y := g.ring, sum.layout
	length, count := r.Limbs*r.N, y.Rows*y.Cols
	var values []*big.Int
	digits, out, residues := make([]uint64, r.Limbs), make([]uint64, r.Words()), make([]uint64, r.Limbs)
	for o := range y.OutPolys() {
		total := make([]uint64, length)
		for _, secret := range g.secrets {
			r.mulAddInto(total, sum.second[o*length:(o+1)*length], secret.s)
		}
		r.intt(total)
		rowFrom, rowTo := span(o/y.colBlocks(), y.BlockRows, y.Rows)
		colFrom, colTo := span(o%y.colBlocks(), y.BlockCols, y.Cols)
		for i := rowFrom; i < rowTo; i++ {
			for k := colFrom; k < colTo; k++ {
				for l, q := range r.Moduli {
					place := l*r.N + y.out(i-rowFrom, k-colFrom)
					residues[l] = addMod(total[place], sum.first[l*count+i*y.Cols+k], q)
				}
				r.lift(residues, digits, out)
				values = append(values, toBig(out))
			}
		}
	}
	return values
}

// Masks and smudging are uniform over exactly their declared width.
func TestMasksHaveTheirWidth(t *testing.T) {
	for _, width := range []int{63, 64, 65, 130, 197} {
		s := newStream(label("masks", width), forMask, nil, 0)
		x := make([]uint64, 4)
		var counts [16]int
		const draws = 32000
		for range draws {
			centred(x, width, s)
			value := toBig(x)
			half := new(big.Int).Lsh(big.NewInt(1), uint(width-1))
			value.Add(value, half)
			if value.Sign() < 0 || value.BitLen() > width {
				t.Fatalf("a mask of %d bits is out of range", width)
			}
			counts[new(big.Int).Rsh(value, uint(width-4)).Uint64()]++
		}
		chi := 0.0
		for _, count := range counts {
			d := float64(count) - draws/16
			chi += d * d / (draws / 16)
		}
		if chi > 50 { // 15 degrees of freedom: beyond 50 with probability 1e-5
			t.Fatalf("masks of %d bits are not uniform (chi-square %.0f)", width, chi)
		}
	}
}

func TestErrorsAndSecretsHaveTheirDistribution(t *testing.T) {
	s := newStream(label("errors"), forError, nil, 0)
	const draws = 1 << 18
	sum, squares := 0.0, 0.0
	for range draws {
		value := float64(smallError(s))
		sum += value
		squares += value * value
	}
	if mean := sum / draws; mean > 0.04 || mean < -0.04 {
		t.Fatalf("errors have mean %.3f", mean)
	}
	if variance := squares / draws; variance < 10.3 || variance > 10.7 {
		t.Fatalf("errors have variance %.2f, not 10.5", variance)
	}
	r := mustGet("wide4")
	poly := make([]uint64, r.Limbs*r.N)
	r.ternary(poly, newStream(label("secret"), forSecret, nil, 0))
	counts := map[uint64]int{}
	for _, value := range r.limb(poly, 2) {
		counts[value]++
	}
	for _, value := range []uint64{0, 1, r.Moduli[2] - 1} {
		if counts[value] < 2550 || counts[value] > 2910 { // 2731 +- 4.2 deviations
			t.Fatalf("%d coefficients are %d", counts[value], value)
		}
	}
}
