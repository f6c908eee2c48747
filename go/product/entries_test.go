package product

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// entriesLayouts: one block and many, several columns in a polynomial, polynomials filled to the last place.
var entriesLayouts = []struct {
	ring string
	y    Layout
}{
	{"deep8", Layout{359, 1, 1, 384, 1, 1, true}},
	{"deep8", Layout{70, 1, 5, 35, 1, 2, true}},
	{"deep5", Layout{46, 1, 29, 46, 1, 29, true}},
	{"wide4", Layout{20, 1, 3, 7, 1, 3, true}},
	{"wide4", Layout{1, 1, 1, 1, 1, 1, true}},
}

func entriesBig(x, y [][]*big.Int) [][]*big.Int {
	out := make([][]*big.Int, len(y))
	for i := range y {
		for k := range y[i] {
			out[i] = append(out[i], new(big.Int).Mul(x[i][0], y[i][k]))
		}
	}
	return out
}

func TestProductsOfEntriesAreExact(t *testing.T) {
	const parties, bits = 3, 20
	rng := rand.New(rand.NewPCG(71, 72))
	for _, c := range entriesLayouts {
		g, y := newGroup(t, c.ring, parties), c.y
		var lefts, rights []*Matrix
		for range parties {
			lefts = append(lefts, randomMatrix(rng, y.Rows, 1, bits-2))
			rights = append(rights, randomMatrix(rng, y.Rows, y.Cols, bits-2))
		}
		right := bits + bitsOf(y.BlockRows*y.BlockCols)/2 + 1
		shift := g.ring.NoiseBits(parties, right) + TruncateMargin
		clearing := Clearing{parties, 2*bits + shift, right, shift, 2*bits + shift + MaskMargin}
		shares := g.refresh(g.product(g.encrypt(lefts, nil, shift, y), rights, nil), clearing)
		nearly(t, sumOf(shares), entriesBig(sumOf(lefts), sumOf(rights)), 0, 0, parties/2+1)
	}
}

// No product of two different entries falls on the place of a result: a block of every size up to the
// largest that fits. (A progression among the places would put one there.)
func TestNothingElseFallsOnAResult(t *testing.T) {
	const rows = 384
	y := Layout{rows, 1, 1, rows, 1, 1, true}
	if err := y.check(mustGet("deep8")); err != nil {
		t.Fatal(err)
	}
	if (Layout{rows + 1, 1, 1, rows + 1, 1, 1, true}).check(mustGet("deep8")) == nil {
		t.Fatal("a block that wraps was accepted")
	}
	results := map[int]int{}
	for i := range rows {
		results[y.out(i, 0)] = i
	}
	if len(results) != rows {
		t.Fatal("two results at one place")
	}
	for i := range rows {
		for j := range rows {
			if h, hit := results[y.left(i, 0)+y.right(j, 0)]; hit && (i != h || j != h) {
				t.Fatalf("%d times %d falls on the result of %d", i, j, h)
			}
		}
	}
}

// The noise of entrywise products is below its bound: that of the entries of one polynomial.
func TestNoiseBoundHoldsForEntries(t *testing.T) {
	const parties = 3
	rng := rand.New(rand.NewPCG(73, 74))
	g, y := newGroup(t, "wide4", parties), Layout{96, 1, 6, 48, 1, 6, true}
	var lefts, rights []*Matrix
	for range parties {
		lefts = append(lefts, NewMatrix(y.Rows, 1, 1))
		rights = append(rights, randomMatrix(rng, y.Rows, y.Cols, 20))
	}
	sum := g.product(g.encrypt(lefts, nil, 0, y), rights, nil)
	norm := new(big.Float)
	for _, row := range sumOf(rights)[:y.BlockRows] {
		for _, value := range row {
			f := new(big.Float).SetInt(value)
			norm.Add(norm, f.Mul(f, f))
		}
	}
	bound, largest := g.ring.NoiseBits(parties, norm.Sqrt(norm).MantExp(nil)), 0
	for _, value := range decrypt(g, sum) {
		largest = max(largest, value.BitLen())
	}
	if largest > bound || largest < bound-6 {
		t.Fatalf("noise of %d bits, bound %d", largest, bound)
	}
}

// Entries are read off the second halves as matrices are, unless those are re-randomised.
func TestEntriesAreDisclosedUnlessRerandomised(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 76))
	g, y := newGroup(t, "wide4", 2), Layout{40, 1, 2, 40, 1, 2, true}
	left := g.encrypt([]*Matrix{randomMatrix(rng, 40, 1, 30), NewMatrix(40, 1, 1)}, nil, 70, y)
	private := randomMatrix(rng, 40, 2, 20)
	right, err := EncodeRight(g.ring, private, 21, y)
	must(t, right, err)
	for _, rerandomise := range []bool{false, true} {
		message := make([]byte, ProductSize(g.ring, y))
		must(t, message, multiply(message, g.key, []Term{{left, right}}, nil, 0, label("z"), nil, rerandomise))
		c1 := make([]uint64, g.ring.Limbs*g.ring.N)
		g.ring.uniform(c1, newStream(label("common", g.counter), forCommon, nil, 0))
		found, hits := divide(t, g.ring, message[g.ring.residuesSize(80):], c1), 0
		for i := range 40 {
			for k := range 2 {
				if found[y.right(i, k)] == g.ring.residue(private.At(i, k), 0) {
					hits++
				}
			}
		}
		if want := map[bool]int{false: 80, true: 0}[rerandomise]; hits != want {
			t.Fatalf("the attack found %d of 80 entries, re-randomised: %v", hits, rerandomise)
		}
	}
}

func TestLayoutsOfEntriesAreChecked(t *testing.T) {
	r := mustGet("wide4")
	for _, y := range []Layout{
		{4, 2, 4, 4, 1, 4, true},      // an inner dimension
		{4, 1, 4, 4, 2, 4, true},      // or one of its blocks
		{200, 1, 4, 200, 1, 4, true},  // does not fit
		{8, 1, 1000, 8, 1, 400, true}, // nor does this
	} {
		if y.check(r) == nil {
			t.Fatalf("%v was accepted", y)
		}
	}
	y := Layout{4, 1, 2, 4, 1, 2, true}
	if _, err := EncodeRight(r, NewMatrix(1, 2, 1), 20, y); err == nil {
		t.Fatal("a right side of one row was accepted")
	}
	if _, err := StreamTransposed(r, NewMatrix(2, 4, 1), 20, y); err == nil {
		t.Fatal("a transposed one was accepted")
	}
}
