package product

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/core/vector"
)

func TestTheTableIsPinned(t *testing.T) {
	want := []struct {
		name        string
		logN, limbs int
	}{{"wide4", 13, 4}, {"deep5", 14, 5}, {"deep6", 14, 6}, {"deep7", 14, 7}, {"deep8", 14, 8}}
	if len(Table) != len(want) {
		t.Fatal("the table has other rows")
	}
	for i, row := range Table {
		if row.Name != want[i].name || row.LogN != want[i].logN || len(row.Moduli) != want[i].limbs || row.Security != 128 {
			t.Fatalf("row %d of the table changed", i)
		}
		if limit := map[int]float64{13: 214, 14: 430}[row.LogN]; row.MaxLogQ != limit || row.LogQ() > limit {
			t.Fatalf("%q: modulus of %.1f bits, %.0f are secure", row.Name, row.LogQ(), row.MaxLogQ)
		}
		for _, q := range row.Moduli {
			if !new(big.Int).SetUint64(q).ProbablyPrime(40) || q%(2<<row.LogN) != 1 || q>>51 != 1 {
				t.Fatalf("%x is not a modulus for degree 2^%d", q, row.LogN)
			}
		}
	}
	if MaskMargin != 64 || TruncateMargin != 60 {
		t.Fatal("the margins changed")
	}
}

func TestReductionsAgreeWithBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := mustGet("deep8")
	words := r.Words()
	for range 500 {
		x := make([]uint64, words)
		for k := range x {
			x[k] = rng.Uint64()
		}
		shiftRight(x, 64*words-1-rng.IntN(r.Limbs*modulusBits-2)) // a random width
		value := toBig(x)
		residues := make([]uint64, r.Limbs)
		for l, q := range r.Moduli {
			residues[l] = r.residue(x, l)
			if want := new(big.Int).Mod(value, new(big.Int).SetUint64(q)); want.Uint64() != residues[l] {
				t.Fatalf("residue modulo %x", q)
			}
		}
		out, digits := make([]uint64, words), make([]uint64, r.Limbs)
		r.lift(residues, digits, out)
		if toBig(out).Cmp(value) != 0 {
			t.Fatal("lifting does not undo reducing")
		}
		high, low := rng.Uint64(), rng.Uint64()
		wide := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(high), 64), new(big.Int).SetUint64(low))
		want := new(big.Int).Mod(wide, new(big.Int).SetUint64(r.Moduli[3])).Uint64()
		if reduce128(high, low, r.Moduli[3], r.barrett[3]) != want {
			t.Fatal("reduction of 128 bits")
		}
		shift := 1 + rng.IntN(200)
		rounded := append([]uint64(nil), x...)
		roundShift(rounded, shift)
		half := new(big.Int).Lsh(big.NewInt(1), uint(shift-1))
		if toBig(rounded).Cmp(new(big.Int).Rsh(new(big.Int).Add(value, half), uint(shift))) != 0 {
			t.Fatal("rounding shift")
		}
	}
}

func TestPackingRoundTripsAndRefusesLargeResidues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := mustGet("wide4")
	for _, count := range []int{1, 2, 7, 64, 101} {
		values := make([]uint64, r.Limbs*count)
		for i := range values {
			values[i] = rng.Uint64N(r.Moduli[i/count])
		}
		data := make([]byte, r.residuesSize(count))
		r.packResidues(data, values, count)
		back := make([]uint64, len(values))
		if err := r.unpackResidues(back, data, count); err != nil {
			t.Fatal(err)
		}
		for i := range values {
			if back[i] != values[i] {
				t.Fatalf("value %d of %d changed", i, count)
			}
		}
		values[2*count-1] = r.Moduli[1]
		r.packResidues(data, values, count)
		if r.unpackResidues(back, data, count) == nil || r.unpackAdd(back, data, count) == nil {
			t.Fatal("a residue equal to its modulus was accepted")
		}
	}
}

// Both rings, several shapes of blocks, everybody's matrix on the right.
func TestProductsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	cases := []struct {
		ring               string
		parties            int
		y                  Layout
		leftBits, rightBit int
		shift              int
	}{
		{"wide4", 3, Layout{5, 7, 6, 5, 7, 6, false}, 40, 24, 72},
		{"wide4", 2, Layout{29, 100, 61, 16, 23, 22, false}, 38, 20, 74},
		{"wide4", 6, Layout{3, 50, 2, 2, 7, 1, false}, 40, 24, 70},
		{"deep8", 3, Layout{29, 29, 58, 29, 15, 37, false}, 110, 100, 80},
		{"deep8", 2, Layout{1, 40, 40, 1, 40, 40, false}, 120, 110, 76},
	}
	for _, c := range cases {
		g := newGroup(t, c.ring, c.parties)
		var lefts, rights, plains []*Matrix
		for range c.parties {
			lefts = append(lefts, randomMatrix(rng, c.y.Rows, c.y.Inner, c.leftBits-3))
			rights = append(rights, randomMatrix(rng, c.y.Inner, c.y.Cols, c.rightBit-3))
			plains = append(plains, randomMatrix(rng, c.y.Rows, c.y.Cols, c.leftBits+c.rightBit+c.shift-4))
		}
		value := c.leftBits + c.rightBit + c.shift + bitsOf(c.y.Inner)
		right := c.rightBit + bitsOf(c.y.Inner*c.y.BlockCols)/2 + 1
		noise := g.ring.NoiseBits(c.parties, right)
		clearing := Clearing{c.parties, value, right, noise + TruncateMargin, value + MaskMargin}
		if clearing.check(g.ring) != nil {
			clearing.Truncate = noise + TruncateMargin
			t.Fatal(clearing.check(g.ring))
		}
		sum := g.product(g.encrypt(lefts, nil, c.shift, c.y), rights, plains)
		shares := g.refresh(sum, clearing)
		want := timesBig(sumOf(lefts), sumOf(rights))
		extra := sumOf(plains)
		for i := range want {
			for k := range want[i] {
				want[i][k].Lsh(want[i][k], uint(c.shift)).Add(want[i][k], extra[i][k])
			}
		}
		nearly(t, sumOf(shares), want, 0, clearing.Truncate, c.parties/2+1)
	}
}

func bitsOf(n int) int { return big.NewInt(int64(n)).BitLen() }

// A product of two secret matrices: the right side is a share too, far wider
// than the value it adds up to; then on to the other ring, transposed.
func TestSharesMultiplyAndMoveBetweenRings(t *testing.T) {
	const parties, n, bits, shift = 3, 12, 40, 114
	rng := rand.New(rand.NewPCG(7, 8))
	g := newGroup(t, "wide4", parties)
	deep := newGroup(t, "deep8", parties)
	y := Layout{n, n, n, n, n, n, false}
	identity, zero := NewMatrix(n, n, 1), NewMatrix(n, n, 1)
	for i := range n {
		identity.At(i, i)[0] = 1 << 10
	}
	secret := randomMatrix(rng, n, n, bits)
	first := Clearing{parties, bits + 70 + 10, 13, 80, bits + 80 + 64}
	shares := g.refresh(g.product(
		g.encrypt([]*Matrix{secret, zero, zero}, nil, 70, y), []*Matrix{identity, zero, zero}, nil), first)
	nearly(t, sumOf(shares), sumOf([]*Matrix{secret}), 80, 80, parties/2+1)

	for _, share := range shares[:parties] {
		if wide := width(share.At(0, 0)); wide < bits+40 {
			t.Fatalf("a share of %d bits does not hide %d", wide, bits)
		}
	}
	turned := make([]*Matrix, len(shares))
	for p, share := range shares {
		turned[p] = NewMatrix(n, n, share.Words)
		for i := range n {
			for j := range n {
				copy(turned[p].At(j, i), share.At(i, j))
			}
		}
	}
	left := deep.encrypt(turned[:parties], turned[parties], shift, y)
	second := Clearing{parties, 2*bits + shift + 5, bits + 5, shift, 2*bits + shift + 5 + 64}
	gram := deep.refresh(deep.product(left, shares, nil), second)
	value := sumOf(shares)
	nearly(t, sumOf(gram), timesBig(sumOf(turned), value), shift, shift, parties/2+1)
}

// Shorter rings of a family use the same keys, cut to their moduli.
func TestAFamilySharesItsKeys(t *testing.T) {
	const parties = 2
	rng := rand.New(rand.NewPCG(21, 22))
	full, short := newGroup(t, "deep8", parties), newGroup(t, "deep5", parties)
	whole := make([]byte, full.ring.PolySize())
	must(t, whole, full.key.Write(whole))
	prefix := whole[:short.ring.PolySize()]
	key, err := NewPublicKey(short.ring, [][]byte{prefix}, label("common key", "deep8"))
	short.key = must(t, key, err)
	y := Layout{5, 6, 7, 5, 6, 7, false}
	lefts := []*Matrix{randomMatrix(rng, 5, 6, 40), NewMatrix(5, 6, 1)}
	rights := []*Matrix{randomMatrix(rng, 6, 7, 30), NewMatrix(6, 7, 1)}
	shares := short.refresh(short.product(short.encrypt(lefts, nil, 40, y), rights, nil), Clearing{parties, 120, 35, 102, 184})
	nearly(t, sumOf(shares), timesBig(sumOf(lefts), sumOf(rights)), 40, 102, parties/2+1)
}

func TestDecryptionFailsWithoutTheLastShare(t *testing.T) {
	const parties = 4
	rng := rand.New(rand.NewPCG(9, 10))
	g := newGroup(t, "wide4", parties)
	y := Layout{4, 4, 4, 4, 4, 4, false}
	zero := NewMatrix(4, 4, 1)
	lefts := []*Matrix{randomMatrix(rng, 4, 4, 30), zero, zero, zero}
	rights := []*Matrix{randomMatrix(rng, 4, 4, 20), zero, zero, zero}
	clearing := Clearing{parties, 130, 25, 95, 194}
	sum := g.product(g.encrypt(lefts, nil, 70, y), rights, nil)
	second := g.second(sum)
	opened := NewMatrix(4, 4, clearing.ShareWords())
	for i, secret := range g.secrets[:parties-1] {
		message, _ := g.masked(secret, second, y, clearing, label("m", i))
		if err := sum.AddShare(message); err != nil {
			t.Fatal(err)
		}
	}
	if sum.Clear(opened, clearing) == nil {
		t.Fatal("three of four shares were enough")
	}
	// The attackers ignore the count: what they lift is wide as the modulus.
	sum.shares = parties
	if sum.Clear(opened, clearing) == nil {
		t.Fatal("what three shares give looks like a masked value")
	}
	// They guess the last secret: same result.
	guess, err := NewSecret(g.ring, label("guess"))
	must(t, guess, err)
	sum.shares = parties - 1
	message, _ := g.masked(guess, second, y, clearing, label("m", 9))
	if err := sum.AddShare(message); err != nil {
		t.Fatal(err)
	}
	if sum.Clear(opened, clearing) == nil {
		t.Fatal("a wrong key decrypts")
	}
}

// The second half of a product is a linear function of the party's matrix with
// public coefficients: divide, and read it off.
func TestTheSecondHalfDisclosesTheMatrixUnlessRerandomised(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	g := newGroup(t, "wide4", 2)
	y := Layout{8, 16, 16, 8, 16, 16, false}
	zero := NewMatrix(8, 16, 1)
	left := g.encrypt([]*Matrix{randomMatrix(rng, 8, 16, 30), zero}, nil, 70, y)
	private := randomMatrix(rng, 16, 16, 20)
	encoded, err := EncodeRight(g.ring, private, 21, y)
	must(t, encoded, err)
	streamed, err := StreamRight(g.ring, private, 21, y)
	must(t, streamed, err)
	for i, right := range []*Right{encoded, encoded, streamed, streamed} {
		rerandomise := i%2 == 1
		message := make([]byte, ProductSize(g.ring, y))
		must(t, message, multiply(message, g.key, []Term{{left, right}}, nil, 0, label("z"), nil, rerandomise))
		c1 := make([]uint64, g.ring.Limbs*g.ring.N) // everybody expands it from the common seed
		g.ring.uniform(c1, newStream(label("common", g.counter), forCommon, nil, 0))
		found := divide(t, g.ring, message[g.ring.residuesSize(8*16):], c1)
		hits := 0
		for j := range 16 {
			for k := range 16 {
				if found[y.right(j, k)] == g.ring.residue(private.At(j, k), 0) {
					hits++
				}
			}
		}
		if !rerandomise && hits != 256 {
			t.Fatalf("the attack should work without re-randomising, found %d of 256", hits)
		}
		if rerandomise && hits > 0 {
			t.Fatalf("the attack found %d of 256 entries", hits)
		}
	}
}

// divide solves product = c1 * matrix modulo the first modulus.
func divide(t *testing.T, r *Ring, product []byte, c1 []uint64) []uint64 {
	poly := make([]uint64, r.Limbs*r.N)
	if err := r.unpackResidues(poly, product, r.N); err != nil {
		t.Fatal(err)
	}
	q := new(big.Int).SetUint64(r.Moduli[0])
	for i := range r.N {
		inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(c1[i]), q)
		poly[i] = mulMod(poly[i], inverse.Uint64(), r.Moduli[0], r.barrett[0])
	}
	part := r.limb(poly, 0)
	r.arithmetic[0].Backward(part)
	return part
}

func TestBoundsAreChecked(t *testing.T) {
	g := newGroup(t, "wide4", 2)
	y := Layout{4, 4, 4, 4, 4, 4, false}
	x := NewMatrix(4, 4, 1)
	x.At(2, 1)[0] = 1 << 20
	if _, err := EncodeRight(g.ring, x, 20, y); err == nil {
		t.Fatal("an entry beyond its bound was encoded")
	}
	if _, err := EncodeRight(g.ring, x, 21, y); err != nil {
		t.Fatal(err)
	}
	room := make([]byte, g.ring.PolySize())
	if g.secrets[0].Encrypt(room, x, 20, 10, y, label("c"), label("e")) == nil {
		t.Fatal("an entry beyond its bound was encrypted")
	}
	bad := []Clearing{
		{2, 130, 24, 80, 194},              // drops too few bits
		{2, 130, 24, 95, 193},              // masks too narrow
		{2, 145, 24, 95, 209},              // masks wider than the ring
		{1, 100, 24, 95, 180},              // nobody to hide from
		{MaxParties + 1, 100, 24, 95, 180}, // more than the bounds are proven for
	}
	for i, c := range bad {
		if c.check(g.ring) == nil {
			t.Fatalf("clearing %d was accepted", i)
		}
	}
}

// The same seeds give the same bytes, whatever the number of cores did.
func TestEverythingIsAFunctionOfItsSeeds(t *testing.T) {
	run := func() []byte {
		rng := rand.New(rand.NewPCG(15, 16))
		g := newGroup(t, "wide4", 2)
		y := Layout{16, 46, 44, 16, 23, 22, false}
		left := g.encrypt([]*Matrix{randomMatrix(rng, 16, 46, 30), NewMatrix(16, 46, 1)}, nil, 70, y)
		right, err := EncodeRight(g.ring, randomMatrix(rng, 46, 44, 20), 21, y)
		must(t, right, err)
		message := make([]byte, ProductSize(g.ring, y))
		return must(t, message, Multiply(message, g.key, []Term{{left, right}}, nil, 0, label("z"), []byte("step")))
	}
	if !bytes.Equal(run(), run()) {
		t.Fatal("two runs from the same seeds differ")
	}
}

func TestCombineAndSmudge(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	x, y := randomMatrix(rng, 3, 3, 150), randomMatrix(rng, 3, 3, 90)
	got := NewMatrix(3, 3, 3)
	must(t, got, Combine(got, []*Matrix{x, y}, []int64{-3 << 49, 5 << 50}, 50))
	for i := range 3 {
		for j := range 3 {
			exact := new(big.Int).Mul(toBig(x.At(i, j)), big.NewInt(-3<<49))
			exact.Add(exact, new(big.Int).Mul(toBig(y.At(i, j)), big.NewInt(5<<50)))
			exact.Add(exact, new(big.Int).Lsh(big.NewInt(1), 49)).Rsh(exact, 50)
			if toBig(got.At(i, j)).Cmp(exact) != 0 {
				t.Fatal("combination is wrong")
			}
		}
	}
	smudged := NewMatrix(3, 3, y.Words)
	must(t, smudged, Smudge(smudged, y, 100, label("s"), nil))
	for i := range 3 {
		for j := range 3 {
			moved := new(big.Int).Sub(toBig(smudged.At(i, j)), toBig(y.At(i, j)))
			if moved.BitLen() > 99 || moved.BitLen() < 80 {
				t.Fatalf("smudged by %d bits", moved.BitLen())
			}
		}
	}
}

// A right side that is encoded on the way gives the same bytes, also beside one that
// was encoded before, with blocks that do not fill their places, on every path.
func TestStreamedProductsEqualCachedOnes(t *testing.T) {
	onEveryPath(t, func(t *testing.T, path vector.Path) {
		r, err := newRing(Table[0], path)
		must(t, r, err)
		streamedEqualsCached(t, newGroupIn(t, r, 2))
	})
}

func streamedEqualsCached(t *testing.T, g *group) {
	rng := rand.New(rand.NewPCG(51, 52))
	first, second := Layout{9, 53, 41, 5, 7, 9, false}, Layout{9, 3, 41, 5, 7, 9, false}
	var lefts []*Ciphertext
	var rights []*Matrix
	for _, y := range []Layout{first, second} {
		lefts = append(lefts, g.encrypt([]*Matrix{randomMatrix(rng, 9, y.Inner, 30), NewMatrix(9, y.Inner, 1)}, nil, 40, y))
	}
	rights = append(rights, randomMatrix(rng, 53, 41, 20), randomMatrix(rng, 3, 41, 90))
	sums := func(sum func([]uint64, []uint64, []Term, Layout) error, makers ...func(*Ring, *Matrix, int, Layout) (*Right, error)) []uint64 {
		var terms []Term
		for i, make := range makers {
			right, err := make(g.ring, rights[i], 20+70*i, lefts[i].layout)
			terms = append(terms, Term{lefts[i], must(t, right, err)})
		}
		length := first.OutPolys() * g.ring.Limbs * g.ring.N
		out := make([]uint64, 2*length)
		return must(t, out, sum(out[:length], out[length:], terms, first))
	}
	want := sums(g.ring.sumOfProducts, EncodeRight, EncodeRight)
	if !slices.Equal(sums(g.ring.sumOfStreamed, StreamRight, EncodeRight), want) ||
		!slices.Equal(sums(g.ring.sumOfStreamed, StreamRight, StreamRight), want) {
		t.Fatal("a streamed right side gives another product")
	}
	turned := func(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
		across := NewMatrix(x.Cols, x.Rows, x.Words)
		for i := range x.Rows {
			for j := range x.Cols {
				copy(across.At(j, i), x.At(i, j))
			}
		}
		return StreamTransposed(r, across, limit, y)
	}
	if !slices.Equal(sums(g.ring.sumOfStreamed, turned, turned), want) {
		t.Fatal("a turned right side gives another product")
	}
	if _, can := g.ring.arithmetic[0].(vector.Parted); can {
		want = sums(g.ring.sumOfProducts, EncodeRight)
		defer func(words int) { partWords = words }(partWords)
		for _, partWords = range []int{1, 5000, partWords} { // one column of blocks at a time, two, all
			if !slices.Equal(sums(g.ring.sumOfParts, StreamRight), want) || !slices.Equal(sums(g.ring.sumOfParts, turned), want) {
				t.Fatal("a product made part by part is another one")
			}
		}
	}
	if _, err := StreamRight(g.ring, rights[0], 10, first); err == nil {
		t.Fatal("entries beyond their bound are streamed")
	}
}
