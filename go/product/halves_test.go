package product

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/core/vector"
)

// begun is a ciphertext of the matrices' sum times 2^shift: its second halves, and the first ones, which come later.
func (g *group) begun(shares []*Matrix, shift int, y Layout) (*Ciphertext, []byte) {
	step := g.next()
	common := label("common", step)
	var parts [][]byte
	for i, secret := range g.secrets {
		part := make([]byte, y.LeftPolys()*g.ring.PolySize())
		err := secret.Encrypt(part, shares[i], 64*shares[i].Words, shift, y, common, label("error", step, i))
		parts = append(parts, must(g.t, part, err))
	}
	first := make([]byte, y.LeftPolys()*g.ring.PolySize())
	must(g.t, first, Assemble(first, g.ring, nil, shift, y, parts))
	c, err := BeginCiphertext(g.ring, y, common)
	return must(g.t, c, err), first
}

// apart plays a product whose second halves go ahead: every party has a right side, the last one is known to all.
// It gives all that was written, and everybody's share, the coordinator's last.
func (g *group) apart(lefts, rights []*Matrix, shift int, y Layout, c Clearing) (written, []*Matrix) {
	var out written
	r := g.ring
	left, first := g.begun(lefts, shift, y)
	encoded := make([]*Right, len(rights))
	for i, matrix := range rights {
		make1 := []func(*Ring, *Matrix, int, Layout) (*Right, error){EncodeRight, StreamRight}[i%2]
		right, err := make1(r, matrix, 64*matrix.Words, y)
		encoded[i] = must(g.t, right, err)
	}
	sum, err := NewProductSum(r, y)
	must(g.t, sum, err)
	own := func(i int) []Term { return []Term{{left, encoded[i]}} }
	for i := range g.secrets {
		message := make([]byte, y.OutPolys()*r.PolySize())
		must(g.t, message, Second(message, g.key, own(i), label("zero", i), []byte("step")))
		out.note("second part", message)
		must(g.t, sum, sum.AddSecond(message))
	}
	public := own(len(g.secrets))
	second := g.second(sum)
	must(g.t, left, left.Complete(first))
	var shares []*Matrix
	for i, secret := range g.secrets {
		terms := own(i)
		if i == 0 {
			terms = append(terms, public...)
		}
		body, share := make([]byte, MaskedSize(r, y)), NewMatrix(y.Rows, y.Cols, c.ShareWords())
		ahead := &Ahead{g.key, terms, label("zero", i), []byte("step"), public}
		must(g.t, body, secret.RefreshAhead(body, share, second, ahead, y, c, label("mask", i), nil))
		out.note("masked share", body)
		must(g.t, sum, sum.AddShare(body))
		shares = append(shares, share)
	}
	result, total := NewMatrix(y.Rows, y.Cols, c.ShareWords()), make([]byte, MaskedSize(r, y))
	must(g.t, result, sum.Clear(result, c))
	must(g.t, total, sum.Total(total))
	carried := NewMatrix(y.Rows, y.Cols, c.ShareWords())
	must(g.t, carried, ClearTotal(carried, r, y, total, c))
	if !slices.Equal(carried.Data, result.Data) {
		g.t.Fatal("who is sent the total has another share than the coordinator")
	}
	return out, append(shares, result)
}

func TestHalvesThatTravelApartMakeTheExactProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for _, y := range []Layout{
		{12, 12, 30, 12, 12, 15, false},
		{30, 1, 2, 15, 1, 2, true},
	} {
		g := newGroup(t, "deep8", 3)
		const bits = 40
		zero, rights := NewMatrix(y.Rows, y.Inner, 1), []*Matrix(nil)
		for range 4 {
			rights = append(rights, randomMatrix(rng, y.rightRows(), y.Cols, 90))
		}
		left := randomMatrix(rng, y.Rows, y.Inner, bits)
		right := 92 + bitsOf(y.rightRows()*y.BlockCols)/2 + 1
		noise := g.ring.NoiseBits(3, right)
		value := bits + 70 + 92 + 10
		c := Clearing{3, value, right, noise + TruncateMargin, value + MaskMargin}
		_, shares := g.apart([]*Matrix{left, zero, zero}, rights, 70, y, c)
		want := sumOf(rights)
		if !y.Entrywise {
			want = timesBig(sumOf([]*Matrix{left}), want)
		} else {
			for i := range want {
				for k := range want[i] {
					want[i][k].Mul(want[i][k], toBig(left.At(i, 0)))
				}
			}
		}
		nearly(t, sumOf(shares), want, 70, c.Truncate, 3)
	}
}

// The two halves hold one encryption of zero: with another seed in one of them the sum is noise.
func TestHalvesOfDifferentDrawsDoNotFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	g := newGroup(t, "wide4", 2)
	y := Layout{4, 4, 4, 4, 4, 4, false}
	left := g.encrypt([]*Matrix{randomMatrix(rng, 4, 4, 10), NewMatrix(4, 4, 1)}, nil, 70, y)
	right, err := EncodeRight(g.ring, randomMatrix(rng, 4, 4, 10), 12, y)
	must(t, right, err)
	terms := []Term{{left, right}}
	for _, seeds := range [][2]string{{"a", "a"}, {"a", "b"}} {
		second := make([]byte, y.OutPolys()*g.ring.PolySize())
		must(t, second, Second(second, g.key, terms, label(seeds[0]), nil))
		sum, err := NewProductSum(g.ring, y)
		must(t, sum, err)
		must(t, sum, sum.AddSecond(second))
		c := Clearing{2, 110, 20, g.ring.NoiseBits(2, 20) + TruncateMargin, 174}
		for i, secret := range g.secrets {
			masked, share := g.masked(secret, second, y, c, label("mask", i))
			if i == 0 {
				ahead := &Ahead{g.key, terms, label(seeds[1]), nil, nil}
				must(t, masked, secret.RefreshAhead(masked, share, second, ahead, y, c, label("mask", i), nil))
			}
			must(t, sum, sum.AddShare(masked))
		}
		result := NewMatrix(4, 4, c.ShareWords())
		if fits := sum.Clear(result, c) == nil; fits != (seeds[0] == seeds[1]) {
			t.Fatalf("halves of the seeds %v: %v", seeds, fits)
		}
	}
}

// Of three parties one has a right side; what all know is theirs as well.
func TestAPartyWithoutAProductAddsWhatAllKnow(t *testing.T) {
	rng := rand.New(rand.NewPCG(79, 80))
	g := newGroup(t, "deep8", 3)
	y := Layout{4, 4, 4, 4, 4, 4, false}
	zero, x := NewMatrix(4, 4, 1), randomMatrix(rng, 4, 4, 30)
	left, first := g.begun([]*Matrix{x, zero, zero}, 70, y)
	must(t, left, left.Complete(first))
	rights := []*Matrix{randomMatrix(rng, 4, 4, 30), randomMatrix(rng, 4, 4, 30)}
	var terms [2][]Term
	for i, matrix := range rights {
		right, err := EncodeRight(g.ring, matrix, 32, y)
		terms[i] = []Term{{left, must(t, right, err)}}
	}
	sum, err := NewProductSum(g.ring, y)
	must(t, sum, err)
	second := make([]byte, y.OutPolys()*g.ring.PolySize())
	must(t, second, Second(second, g.key, terms[0], label("z"), nil))
	must(t, sum, sum.AddSecond(second))
	c := Clearing{3, 140, 40, g.ring.NoiseBits(3, 40) + TruncateMargin, 204}
	var shares []*Matrix
	for i, secret := range g.secrets {
		own := [][]Term{slices.Concat(terms[0], terms[1]), nil, nil}[i]
		body, share := make([]byte, MaskedSize(g.ring, y)), NewMatrix(4, 4, c.ShareWords())
		ahead := &Ahead{g.key, own, label("z"), nil, terms[1]}
		must(t, body, secret.RefreshAhead(body, share, second, ahead, y, c, label("mask", i), nil))
		must(t, sum, sum.AddShare(body))
		shares = append(shares, share)
	}
	result := NewMatrix(4, 4, c.ShareWords())
	must(t, result, sum.Clear(result, c))
	nearly(t, sumOf(append(shares, result)), timesBig(sumOf([]*Matrix{x}), sumOf(rights)), 70, c.Truncate, 3)
	other := Layout{4, 4, 5, 4, 4, 5, false}
	share, body := NewMatrix(4, 5, c.ShareWords()), make([]byte, MaskedSize(g.ring, other))
	if g.secrets[1].RefreshAhead(body, share, second, &Ahead{g.key, nil, nil, nil, terms[1]}, other, c, label("m"), nil) == nil {
		t.Fatal("a product of another layout was added")
	}
}

// A second half that goes ahead is as well hidden as one that does not.
func TestASecondHalfThatGoesAheadDisclosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 76))
	g := newGroup(t, "wide4", 2)
	y := Layout{8, 16, 16, 8, 16, 16, false}
	common := label("ahead")
	left, err := BeginCiphertext(g.ring, y, common)
	must(t, left, err)
	private := randomMatrix(rng, 16, 16, 20)
	right, err := EncodeRight(g.ring, private, 21, y)
	must(t, right, err)
	message := make([]byte, y.OutPolys()*g.ring.PolySize())
	hits := func() (count int) {
		c1 := make([]uint64, g.ring.Limbs*g.ring.N)
		g.ring.uniform(c1, newStream(common, forCommon, nil, 0))
		found := divide(t, g.ring, message, c1)
		for j := range 16 {
			for k := range 16 {
				if found[y.right(j, k)] == g.ring.residue(private.At(j, k), 0) {
					count++
				}
			}
		}
		return count
	}
	bare, err := g.ring.halfSum([]Term{{left, right}}, secondHalf)
	must(t, bare, err)
	g.ring.packResidues(message, bare, g.ring.N)
	if hits() != 256 {
		t.Fatal("what nothing hides should be found")
	}
	must(t, message, Second(message, g.key, []Term{{left, right}}, label("z"), nil))
	if hits() != 0 {
		t.Fatal("the attack found entries")
	}
}

func TestACiphertextThatIsBegunHasNoFirstHalves(t *testing.T) {
	g := newGroup(t, "wide4", 2)
	y := Layout{4, 4, 4, 4, 4, 4, false}
	zero := NewMatrix(4, 4, 1)
	left, first := g.begun([]*Matrix{zero, zero}, 10, y)
	right, err := EncodeRight(g.ring, zero, 4, y)
	must(t, right, err)
	terms := []Term{{left, right}}
	whole, half := make([]byte, ProductSize(g.ring, y)), make([]byte, MaskedSize(g.ring, y))
	second := make([]byte, y.OutPolys()*g.ring.PolySize())
	must(t, second, Second(second, g.key, terms, label("z"), nil))
	c := Clearing{2, 110, 20, g.ring.NoiseBits(2, 20) + TruncateMargin, 174}
	refreshed := func() error {
		share := NewMatrix(4, 4, c.ShareWords())
		return g.secrets[0].RefreshAhead(half, share, second, &Ahead{g.key, terms, label("z"), nil, nil}, y, c, label("m"), nil)
	}
	if Multiply(whole, g.key, terms, nil, 0, label("z"), nil) == nil || refreshed() == nil {
		t.Fatal("there is nothing to multiply yet")
	}
	must(t, left, left.Complete(first))
	must(t, half, refreshed())
	if left.Complete(first) == nil {
		t.Fatal("first halves came twice")
	}
}

// recordedHalves is the digest of all that is written below, on any processor.
const recordedHalves = "bfe992b71ca8e0e17c0a593acb8a7a429f1cfc47f435286be84c855c564d0fbd"

func TestHalvesAreTheSameOnEveryPath(t *testing.T) {
	onEveryPath(t, func(t *testing.T, path vector.Path) {
		var all []any
		for _, parameters := range []Parameters{Table[0], Table[len(Table)-1]} {
			r, err := newRing(parameters, path)
			must(t, r, err)
			g, rng := newGroupIn(t, r, 2), rand.New(rand.NewPCG(77, 78))
			for _, y := range pathLayouts {
				lefts := []*Matrix{randomMatrix(rng, y.Rows, y.Inner, 30), randomMatrix(rng, y.Rows, y.Inner, 20)}
				var rights []*Matrix
				for i := range 3 {
					rights = append(rights, randomMatrix(rng, y.rightRows(), y.Cols, 20+40*(i/2)))
				}
				c := Clearing{2, int(r.LogQ()) - 4 - 64, 70, r.NoiseBits(2, 70) + 60, int(r.LogQ()) - 4}
				sent, shares := g.apart(lefts, rights, 20, y, c)
				all = append(all, parameters.Name, sent, shares[2].Data)
			}
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, all...))); got != recordedHalves {
			t.Errorf("the messages have the digest %s and not that of the record", got)
		}
	})
}
