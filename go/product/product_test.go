package product

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/core/vector"
)

// The group plays all parties and the coordinator in one process.
type group struct {
	t       testing.TB
	ring    *Ring
	secrets []*Secret
	key     *PublicKey
	counter int
}

func label(parts ...any) []byte {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return sum[:]
}

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func newGroup(t testing.TB, name string, parties int) *group {
	return newGroupIn(t, mustGet(name), parties)
}

func newGroupIn(t testing.TB, r *Ring, parties int) *group {
	g := &group{t: t, ring: r}
	common := label("common key", r.Name)
	var parts [][]byte
	for i := range parties {
		secret, err := NewSecret(r, label("secret", i))
		g.secrets = append(g.secrets, must(t, secret, err))
		part := make([]byte, r.PolySize())
		parts = append(parts, must(t, part, secret.PublicKeyShare(part, common, label("key error", i))))
	}
	key, err := NewPublicKey(r, parts, common)
	g.key = must(t, key, err)
	return g
}

func mustGet(name string) *Ring {
	r, err := Get(name)
	if err != nil {
		panic(err)
	}
	return r
}

func (g *group) next() int { g.counter++; return g.counter }

// encrypt encrypts the sum of the shares (one per party) times 2^shift.
func (g *group) encrypt(shares []*Matrix, public *Matrix, shift int, y Layout) *Ciphertext {
	step := g.next()
	common := label("common", step)
	var parts [][]byte
	for i, secret := range g.secrets {
		part := make([]byte, y.LeftPolys()*g.ring.PolySize())
		err := secret.Encrypt(part, shares[i], 64*shares[i].Words, shift, y, common, label("error", step, i))
		parts = append(parts, must(g.t, part, err))
	}
	first := make([]byte, y.LeftPolys()*g.ring.PolySize())
	must(g.t, first, Assemble(first, g.ring, public, shift, y, parts))
	c, err := NewCiphertext(g.ring, y, first, common)
	return must(g.t, c, err)
}

func (g *group) product(left *Ciphertext, rights []*Matrix, plain []*Matrix) *ProductSum {
	step := g.next()
	sum, err := NewProductSum(g.ring, left.layout)
	must(g.t, sum, err)
	for i, matrix := range rights {
		right, err := EncodeRight(g.ring, matrix, 64*matrix.Words, left.layout)
		must(g.t, right, err)
		var added *Matrix
		if plain != nil {
			added = plain[i]
		}
		message := make([]byte, ProductSize(g.ring, left.layout))
		must(g.t, message, Multiply(message, g.key, []Term{{left, right}}, added, 512, label("zero", step, i), nil))
		if err := sum.Add(message); err != nil {
			g.t.Fatal(err)
		}
	}
	return sum
}

// refresh returns every party's share and the coordinator's, last.
func (g *group) refresh(sum *ProductSum, c Clearing) []*Matrix {
	step := g.next()
	second := g.second(sum)
	var shares []*Matrix
	for i, secret := range g.secrets {
		message, share := g.masked(secret, second, sum.layout, c, label("mask", step, i))
		shares = append(shares, share)
		if err := sum.AddShare(message); err != nil {
			g.t.Fatal(err)
		}
	}
	public := NewMatrix(sum.layout.Rows, sum.layout.Cols, c.ShareWords())
	return append(shares, must(g.t, public, sum.Clear(public, c)))
}

func (g *group) second(sum *ProductSum) []byte {
	second := make([]byte, sum.layout.OutPolys()*g.ring.PolySize())
	return must(g.t, second, sum.Second(second))
}

func (g *group) masked(secret *Secret, second []byte, y Layout, c Clearing, seed []byte) ([]byte, *Matrix) {
	message, share := make([]byte, MaskedSize(g.ring, y)), NewMatrix(y.Rows, y.Cols, c.ShareWords())
	must(g.t, message, secret.Refresh(message, share, second, y, c, seed, nil))
	return message, share
}

func toBig(x []uint64) *big.Int {
	value := new(big.Int)
	for k := len(x) - 1; k >= 0; k-- {
		value.Lsh(value, 64)
		value.Or(value, new(big.Int).SetUint64(x[k]))
	}
	if int64(x[len(x)-1]) < 0 {
		value.Sub(value, new(big.Int).Lsh(big.NewInt(1), uint(64*len(x))))
	}
	return value
}

func fromBig(out []uint64, value *big.Int) {
	wrapped := new(big.Int).And(value, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(64*len(out))), big.NewInt(1)))
	for k := range out {
		out[k] = new(big.Int).Rsh(wrapped, uint(64*k)).Uint64()
	}
}

func randomMatrix(rng *rand.Rand, rows, cols, bits int) *Matrix {
	m := NewMatrix(rows, cols, bits/64+1)
	for i := range rows {
		for j := range cols {
			value := new(big.Int)
			for range bits/64 + 1 {
				value.Lsh(value, 64).Or(value, new(big.Int).SetUint64(rng.Uint64()))
			}
			value.Mod(value, new(big.Int).Lsh(big.NewInt(1), uint(bits+1)))
			value.Sub(value, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
			fromBig(m.At(i, j), value)
		}
	}
	return m
}

func sumOf(matrices []*Matrix) [][]*big.Int {
	first := matrices[0]
	out := make([][]*big.Int, first.Rows)
	for i := range out {
		out[i] = make([]*big.Int, first.Cols)
		for j := range out[i] {
			out[i][j] = new(big.Int)
			for _, m := range matrices {
				out[i][j].Add(out[i][j], toBig(m.At(i, j)))
			}
		}
	}
	return out
}

func timesBig(x, y [][]*big.Int) [][]*big.Int {
	out := make([][]*big.Int, len(x))
	for i := range x {
		out[i] = make([]*big.Int, len(y[0]))
		for k := range y[0] {
			out[i][k] = new(big.Int)
			for j := range y {
				out[i][k].Add(out[i][k], new(big.Int).Mul(x[i][j], y[j][k]))
			}
		}
	}
	return out
}

// nearly checks got = round(want 2^shift / 2^truncate) up to the parties' roundings.
func nearly(t *testing.T, got, want [][]*big.Int, shift, truncate, slack int) {
	t.Helper()
	for i := range want {
		for k := range want[i] {
			exact := new(big.Int).Lsh(want[i][k], uint(shift))
			error := new(big.Int).Sub(new(big.Int).Lsh(got[i][k], uint(truncate)), exact)
			bound := new(big.Int).Lsh(big.NewInt(int64(slack)), uint(truncate))
			if error.CmpAbs(bound) > 0 {
				t.Fatalf("entry (%d, %d) is wrong by 2^%d units of the last place", i, k, error.BitLen()-truncate)
			}
		}
	}
}

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
		{"wide4", 3, Layout{5, 7, 6, 5, 7, 6}, 40, 24, 72},
		{"wide4", 2, Layout{29, 100, 61, 16, 23, 22}, 38, 20, 74},
		{"wide4", 6, Layout{3, 50, 2, 2, 7, 1}, 40, 24, 70},
		{"deep8", 3, Layout{29, 29, 58, 29, 15, 37}, 110, 100, 80},
		{"deep8", 2, Layout{1, 40, 40, 1, 40, 40}, 120, 110, 76},
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
	y := Layout{n, n, n, n, n, n}
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
	y := Layout{5, 6, 7, 5, 6, 7}
	lefts := []*Matrix{randomMatrix(rng, 5, 6, 40), NewMatrix(5, 6, 1)}
	rights := []*Matrix{randomMatrix(rng, 6, 7, 30), NewMatrix(6, 7, 1)}
	shares := short.refresh(short.product(short.encrypt(lefts, nil, 40, y), rights, nil), Clearing{parties, 120, 35, 102, 184})
	nearly(t, sumOf(shares), timesBig(sumOf(lefts), sumOf(rights)), 40, 102, parties/2+1)
}

func TestDecryptionFailsWithoutTheLastShare(t *testing.T) {
	const parties = 4
	rng := rand.New(rand.NewPCG(9, 10))
	g := newGroup(t, "wide4", parties)
	y := Layout{4, 4, 4, 4, 4, 4}
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
	y := Layout{8, 16, 16, 8, 16, 16}
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

// Noise of a product stays below its bound and is not absurdly smaller.
func TestNoiseBoundHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, parties := range []int{2, 6} {
		g := newGroup(t, "wide4", parties)
		y := Layout{16, 92, 44, 16, 23, 22}
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

func TestBoundsAreChecked(t *testing.T) {
	g := newGroup(t, "wide4", 2)
	y := Layout{4, 4, 4, 4, 4, 4}
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
		{2, 130, 24, 80, 194},  // drops too few bits
		{2, 130, 24, 95, 193},  // masks too narrow
		{2, 145, 24, 95, 209},  // masks wider than the ring
		{1, 100, 24, 95, 180},  // nobody to hide from
		{65, 100, 24, 95, 180}, // more than the bounds are proven for
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
		y := Layout{16, 46, 44, 16, 23, 22}
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
	first, second := Layout{9, 53, 41, 5, 7, 9}, Layout{9, 3, 41, 5, 7, 9}
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
