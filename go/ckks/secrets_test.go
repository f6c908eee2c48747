package ckks

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// What log2 QP may be at most for 128 bits, ternary secrets and errors of
// deviation 3.2: Bossuat et al. (2024); the standard of 2018 allows 438.
var mostLogQP = map[int]float64{14: 430}

func TestParametersArePinned(t *testing.T) {
	for _, set := range sets {
		product, distinct := big.NewInt(1), map[uint64]bool{}
		for _, q := range append(append([]uint64{}, set.Moduli...), set.Special) {
			if !ring.IsPrime(q) || q%(2<<set.LogN) != 1 || distinct[q] {
				t.Errorf("%s: %x is no modulus", set.Name, q)
			}
			distinct[q] = true
			product.Mul(product, new(big.Int).SetUint64(q))
		}
		if most := mostLogQP[set.LogN]; !set.Insecure && (set.SecurityBits != 128 || product.BitLen() > int(most)) {
			t.Errorf("%s: log QP is %d, not %g at the most", set.Name, product.BitLen(), most)
		}
		if set.Insecure != (set.SecurityBits == 0) || set.Insecure != (set.ID > 128) {
			t.Errorf("%s claims what it does not keep", set.Name)
		}
		if set.ScaleBits != 38 || set.MagnitudeBits != 10 || set.MaskBits != 38+10+64 || set.RefreshLevel != 2 || len(set.Moduli) != 10 {
			t.Errorf("%s has other numbers", set.Name)
		}
		room := big.NewInt(1)
		for _, q := range set.Moduli[:set.RefreshLevel+1] {
			room.Mul(room, new(big.Int).SetUint64(q))
		}
		masked := new(big.Int).Lsh(big.NewInt(int64(set.MaxParties)), uint(set.MaskBits-1))
		masked.Add(masked, new(big.Int).Lsh(big.NewInt(1), uint(set.ScaleBits+set.MagnitudeBits)))
		if masked.Lsh(masked, 1).Cmp(room) >= 0 {
			t.Errorf("%s: the masks of %d parties do not fit the moduli of a refresh", set.Name, set.MaxParties)
		}
		m := must[*Machine](t)(MachineOf(set.ID, true))
		for level, scale := range m.scales {
			if drift := math.Abs(scale.Float64()/math.Exp2(38) - 1); drift > math.Exp2(-17) {
				t.Errorf("%s: the scale of level %d is off by %g", set.Name, level, drift)
			}
		}
	}
	if _, err := MachineOf(testSet, false); err == nil {
		t.Error("an insecure set was given to somebody who did not ask for it")
	}
}

// parts makes everything that a party sends, from given seeds.
func (g *group) parts(t *testing.T, x *Ciphertext, common, seed []byte) map[string][]byte {
	t.Helper()
	s := g.secrets[0]
	shares := make([]byte, 8*ShareWords*g.m.Slots())
	receiver := must[*Receiver](t)(NewReceiver(g.m, common, g.totals.Public))
	out := map[string][]byte{}
	add := func(name string, kind Kind, step int, make1 func(out []byte) error) {
		level := x.Level()
		if kind != KindCiphertext && kind < KindRefresh || kind == KindInput {
			level = g.m.top
		}
		out[name] = make([]byte, must[int](t)(Size(g.m.ID, kind, level, step, true)))
		check(t, make1(out[name]))
	}
	key := func(kind Kind, step int) func([]byte) error {
		return func(out []byte) error { return s.KeyPart(out, kind, step, common, seed, g.totals.Relinearisation1) }
	}
	add("public", KindPublic, 0, key(KindPublic, 0))
	add("relinearisation 1", KindRelinearisation1, 0, key(KindRelinearisation1, 0))
	add("relinearisation 2", KindRelinearisation2, 0, key(KindRelinearisation2, 0))
	add("rotation 1", KindRotation, 1, key(KindRotation, 1))
	add("rotation 2", KindRotation, 2, key(KindRotation, 2))
	add("refresh", KindRefresh, 0, func(out []byte) error { return s.RefreshPart(out, x, common, seed) })
	add("opening", KindOpening, 20, func(out []byte) error { return s.OpeningPart(out, x, seed, 20, 1) })
	add("switching", KindSwitching, 20, func(out []byte) error { return s.SwitchingPart(out, x, receiver, seed, 20, 1) })
	add("share", KindShare, 0, func(out []byte) error { return s.SharePart(out, shares, x, seed) })
	add("input", KindInput, 0, func(out []byte) error { return s.InputPart(out, shares, common, seed) })
	written := func(name string, y *Ciphertext) {
		add(name, KindCiphertext, 0, y.Write)
	}
	written("encryption", must[*Ciphertext](t)(g.keys.Encrypt([]float64{1, 2}, x.Level(), seed, 0)))
	written("rerandomised", must[*Ciphertext](t)(g.keys.Rerandomised(x, seed, 0)))
	return out
}

func TestEverythingIsAFunctionOfItsSeeds(t *testing.T) {
	g := groupOf(t, testSet)
	x := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	once, again := g.parts(t, x, label("c"), label("s")), g.parts(t, x, label("c"), label("s"))
	other := g.parts(t, x, label("c"), label("another"))
	for name, part := range once {
		if !bytes.Equal(part, again[name]) {
			t.Errorf("%s: the same seeds gave other bytes", name)
		}
		if alike(part, other[name]) {
			t.Errorf("%s: another seed gave the same numbers", name)
		}
	}
	commoned := g.parts(t, x, label("another"), label("s"))
	for _, name := range []string{"public", "relinearisation 1", "rotation 1", "refresh", "switching", "input"} {
		if alike(once[name], commoned[name]) {
			t.Errorf("%s: another common seed gave the same numbers", name)
		}
	}
	if alike(once["rotation 1"], once["rotation 2"]) {
		t.Error("two rotation keys have numbers in common")
	}
}

// alike is whether two messages have eight bytes in common where they should not;
// residues of 42 bits and more meet by accident once in 2^42.
func alike(x, y []byte) bool {
	for at := headerSize; at+8 <= min(len(x), len(y)); at += 8 {
		if bytes.Equal(x[at:at+8], y[at:at+8]) {
			return true
		}
	}
	return false
}

// masksOf takes s c1 off a part: what is left are the masks, or the flooding.
func (k *Secret) masksOf(t *testing.T, part []byte, kind Kind, x *Ciphertext, level int) []wide {
	t.Helper()
	_, rows, err := k.m.read(part, kind)
	check(t, err)
	p, r := ring.Poly{Coeffs: rows[:level+1]}, k.m.ring(level)
	r.Sub(p, k.decryption(x.ct.Value[1], level), p)
	masks := make([]wide, k.m.n)
	for i := range masks {
		masks[i] = k.m.lift(p, i)
	}
	return masks
}

// checkUniform holds integers against the uniform distribution on so many bits:
// the range, and mean and deviation within six of their own deviations.
func checkUniform(t *testing.T, what string, list []wide, bits int) {
	t.Helper()
	half, mean, square, positive := math.Exp2(float64(bits-1)), 0.0, 0.0, 0
	for _, x := range list {
		value := x.float() / half
		if value < -1 || value >= 1 {
			t.Fatalf("%s is wider than %d bits", what, bits)
		}
		if value >= 0 {
			positive++
		}
		mean += value / float64(len(list))
		square += value * value / float64(len(list))
	}
	count := float64(len(list))
	if math.Abs(mean) > 6/math.Sqrt(3*count) || math.Abs(square-1.0/3) > 6*math.Sqrt(4.0/45/count) {
		t.Errorf("%s of %d bits has mean %g and mean square %g", what, bits, mean, square)
	}
}

func TestMasksAndFloodingHaveTheirWidth(t *testing.T) {
	g := groupOf(t, testSet)
	x := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	parts := g.parts(t, x, label("c"), label("s"))
	s := g.secrets[0]
	checkUniform(t, "a refresh's mask", s.masksOf(t, parts["refresh"], KindRefresh, x, 2), 112)
	checkUniform(t, "a share's mask", s.masksOf(t, parts["share"], KindShare, x, 2), 112)
	for _, width := range []int{12, 20, 63, 64} {
		flooded := s.flooded(x, newStream(label("s"), forFlooding, label("d"), 0), width)
		part := make([]byte, len(parts["opening"]))
		h := header{kind: KindOpening, set: g.m.ID, level: x.Level(), step: width}
		check(t, h.write(g.m, part, flooded.Coeffs))
		checkUniform(t, "flooding", s.masksOf(t, part, KindOpening, x, 1), width)
	}
}

// A refresh's parts never repeat a mask: not for another coefficient, ciphertext,
// level, common seed or seed, and not as a mask of shares.
func TestRefreshPartsNeverRepeat(t *testing.T) {
	g := groupOf(t, testSet)
	x := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	y := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	s := g.secrets[0]
	seen := map[wide]string{}
	part := make([]byte, must[int](t)(Size(testSet, KindRefresh, 4, 0, true)))
	for _, one := range []struct {
		name         string
		x            *Ciphertext
		common, seed []byte
	}{
		{"first", x, label("c"), label("s")},
		{"another ciphertext", y, label("c"), label("s")},
		{"another common seed", x, label("d"), label("s")},
		{"another seed", x, label("c"), label("r")},
	} {
		check(t, s.RefreshPart(part, one.x, one.common, one.seed))
		for _, mask := range s.masksOf(t, part, KindRefresh, one.x, 2) {
			if before, found := seen[mask]; found {
				t.Fatalf("%s repeats a mask of %s", one.name, before)
			}
			seen[mask] = one.name
		}
	}
	share := g.parts(t, x, label("c"), label("s"))["share"]
	for _, mask := range s.masksOf(t, share, KindShare, x, 2) {
		if before, found := seen[mask]; found {
			t.Fatalf("a share repeats a mask of %s", before)
		}
	}
}

// A provider multiplies a ciphertext that the coordinator knows by one private
// number; the coordinator tries all numbers that it may be. The second half of the
// product tells it which, until it is re-randomised.
func TestAPrivateFactorShowsUntilRerandomised(t *testing.T) {
	g := groupOf(t, testSet)
	x := g.encrypt(t, numbers(1, g.m.Slots(), 1))
	const private = 61
	weighted := func(age float64) *Ciphertext {
		factor := must[*Encoded](t)(Encode(g.m, []float64{1, age, -1}, x.Level()))
		return must[*Ciphertext](t)(g.keys.Inner([]Pair{{x, Factor{Clear: factor}}}, true))
	}
	sent := weighted(private)
	hidden := must[*Ciphertext](t)(g.keys.Rerandomised(sent, label("fresh"), 0))
	found := func(z *Ciphertext, half int) (list []int) {
		for age := range 100 {
			guess := weighted(float64(age))
			if same(guess.ct.Value[half], z.ct.Value[half]) > 0.01 {
				list = append(list, age)
			}
		}
		return list
	}
	for half := range 2 {
		if list := found(sent, half); len(list) != 1 || list[0] != private {
			t.Errorf("half %d of a product does not show the factor: %v", half, list)
		}
		if list := found(hidden, half); len(list) != 0 {
			t.Errorf("half %d of a re-randomised product shows the factor: %v", half, list)
		}
		// What was added is uniform modulo every modulus, not small.
		difference := ring.NewPoly(g.m.n, hidden.Level())
		r := g.m.ring(hidden.Level())
		r.Sub(hidden.ct.Value[half], sent.ct.Value[half], difference)
		r.INTT(difference, difference)
		for l, row := range difference.Coeffs {
			low, small := 0, 0
			for _, value := range row {
				if value < g.m.Moduli[l]/2 {
					low++
				}
				if value < 1<<20 || value > g.m.Moduli[l]-1<<20 {
					small++
				}
			}
			if small > len(row)/100 { // one in 2^17 is by chance
				t.Fatalf("what re-randomises is small modulo modulus %d", l)
			}
			if share := float64(low) / float64(len(row)); math.Abs(share-0.5) > 0.1 {
				t.Errorf("what re-randomises is not spread over modulus %d: %g", l, share)
			}
		}
	}
}

// same is the share of residues that two polynomials have in common.
func same(x, y ring.Poly) float64 {
	count := 0
	for l, row := range x.Coeffs {
		for i, value := range row {
			if value == y.Coeffs[l][i] {
				count++
			}
		}
	}
	return float64(count) / float64(len(x.Coeffs)*len(x.Coeffs[0]))
}

func TestSecretsAreTernaryAndWiped(t *testing.T) {
	m := must[*Machine](t)(MachineOf(testSet, true))
	s := must[*Secret](t)(NewSecret(m, label("ternary")))
	p := ring.NewPoly(m.n, m.top)
	m.ring(m.top).IMForm(s.s.Q, p)
	m.ring(m.top).INTT(p, p)
	counts := map[int64]int{}
	for i := range m.n {
		value := m.lift(lower(p, 1), i)
		counts[int64(value.low)]++
	}
	for value := int64(-1); value <= 1; value++ {
		if math.Abs(float64(counts[value])/float64(m.n)-1.0/3) > 0.09 {
			t.Errorf("%d of %d coefficients are %d", counts[value], m.n, value)
		}
	}
	if len(counts) != 3 {
		t.Errorf("a secret has coefficients %v", counts)
	}
	s.Free()
	for _, row := range rowsOf(s.s) {
		for _, value := range row {
			if value != 0 {
				t.Fatal("a freed secret is still there")
			}
		}
	}
}

// errorsOf checks that p + a key are errors, binomial of variance 21/2, and no others' again.
func (g *group) errorsOf(t *testing.T, name string, seen map[string]bool, p, a, key ring.Poly) {
	t.Helper()
	r, left := g.m.ring(1), ring.NewPoly(g.m.n, 1)
	r.MulCoeffsMontgomery(lower(a, 1), lower(key, 1), left)
	r.Add(left, lower(p, 1), left)
	r.INTT(left, left)
	list, square := []byte{}, 0.0
	for i := range g.m.n {
		value := g.m.lift(left, i).float()
		if math.Abs(value) > 21 {
			t.Fatalf("%s: an error is %g", name, value)
		}
		square += value * value / float64(g.m.n)
		list = append(list, byte(int(value)))
	}
	if math.Abs(square-10.5) > 3 {
		t.Errorf("%s: errors have variance %g", name, square)
	}
	if seen[string(list)] {
		t.Errorf("%s: errors were used before", name)
	}
	seen[string(list)] = true
}

// What is left of a part when the secret's share in it is taken off are its errors.
func TestPartsCarryErrors(t *testing.T) {
	g := groupOf(t, testSet)
	m, s := g.m, g.secrets[0]
	x := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	common := label("c")
	parts := g.parts(t, x, common, label("s"))
	seen := map[string]bool{}
	errors := func(name string, p, a, key ring.Poly) { g.errorsOf(t, name, seen, p, a, key) }
	rows := func(name string, kind Kind) [][]uint64 {
		_, rows, err := m.read(parts[name], kind)
		check(t, err)
		return rows
	}
	errors("public", m.polysOf(rows("public", KindPublic))[0].Q, m.common(common, KindPublic, 0, 0).Q, s.s.Q)
	negative := ring.NewPoly(m.n, m.top)
	m.ring(m.top).Neg(s.s.Q, negative)
	u := s.ephemeral(common, label("s"))
	first := m.polysOf(rows("relinearisation 1", KindRelinearisation1))
	// Rows beyond the second have no gadget modulo the two lowest moduli.
	for row := 2; row <= m.top; row++ {
		a := m.common(common, KindRelinearisation1, 0, row).Q
		errors("relinearisation 1, first half", first[2*row].Q, a, u.Q)
		errors("relinearisation 1, second half", first[2*row+1].Q, a, negative)
	}
	for step := 1; step <= 2; step++ {
		turned := m.params.RingQP().NewPoly()
		back := ring.ModExp(m.params.GaloisElement(step), 2*uint64(m.n)-1, 2*uint64(m.n))
		m.params.RingQP().AutomorphismNTT(s.s, back, turned)
		polys := m.polysOf(rows([]string{"", "rotation 1", "rotation 2"}[step], KindRotation))
		for row := 2; row <= m.top; row++ {
			errors("rotation", polys[row].Q, m.common(common, KindRotation, step, row).Q, turned.Q)
		}
	}
	masks := s.masksOf(t, parts["refresh"], KindRefresh, x, m.RefreshLevel)
	again := ring.Poly{Coeffs: rows("refresh", KindRefresh)[m.RefreshLevel+1:]}
	plain, scale := ring.NewPoly(m.n, m.top), m.again(x.Level())
	for i, mask := range masks {
		m.addWide(plain, i, scale.of(mask))
	}
	m.ring(m.top).NTT(plain, plain)
	m.ring(m.top).Add(again, plain, again)
	errors("refresh", again, m.commonOf(common, KindRefresh), s.s.Q)
}

func TestWrongPartsAreNoticed(t *testing.T) {
	g := groupOf(t, testSet)
	x := must[*Ciphertext](t)(g.keys.Lowered(g.encrypt(t, []float64{3}), 4))
	values := make([]float64, 4)
	missing := &group{m: g.m, secrets: g.secrets[:2]}
	opening := missing.total(t, KindOpening, 4, 20, func(i int, out []byte) error {
		return g.secrets[i].OpeningPart(out, x, label(i), 20, 4)
	})
	if Opened(x, opening, values) == nil {
		t.Error("two of three parts opened a ciphertext")
	}
	refresh := missing.total(t, KindRefresh, 4, 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, label("c"), label(i))
	})
	if _, err := Refreshed(x, refresh, label("c"), 3); err == nil {
		t.Error("two of three parts refreshed a ciphertext")
	}
	full := g.total(t, KindRefresh, 4, 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, label("c"), label(i))
	})
	for _, parties := range []int{0, 64} {
		if _, err := Refreshed(x, full, label("c"), parties); err == nil {
			t.Errorf("%d parties refreshed a ciphertext", parties)
		}
	}
	low := must[*Ciphertext](t)(g.keys.Lowered(x, 3))
	if _, err := Refreshed(low, full, label("c"), 3); err == nil {
		t.Error("parts for another level refreshed a ciphertext")
	}
	lowest := must[*Ciphertext](t)(g.keys.Lowered(x, 1))
	part := make([]byte, len(full))
	if g.secrets[0].RefreshPart(part, lowest, label("c"), label("s")) == nil {
		t.Error("a refresh below the lowest level was possible")
	}
	large := g.encrypt(t, []float64{1000})
	for range 3 {
		large = must[*Ciphertext](t)(g.keys.Scaled(large, 1000))
	}
	total := g.total(t, KindOpening, large.Level(), 20, func(i int, out []byte) error {
		return g.secrets[i].OpeningPart(out, large, label(i), 20, 4)
	})
	if Opened(large, total, values) == nil {
		t.Error("a number beyond its bound was opened")
	}
}

// The streams of one seed for different purposes have nothing in common.
func TestPurposesHaveStreamsOfTheirOwn(t *testing.T) {
	seen := map[uint64]string{}
	for _, purpose := range []string{forSecret, forCommon, forKeyError, forEphemeral, forEncrypt, forZero, forMask,
		forShare, forRecrypt, forFlooding, forVeil, forSwitching} {
		word := newStream(label("seed"), purpose, label("domain"), 0).Word()
		if before, found := seen[word]; found {
			t.Errorf("%q and %q share a stream", purpose, before)
		}
		seen[word] = purpose
	}
}

func TestFloodingIsAnotherForAnotherCiphertext(t *testing.T) {
	g := groupOf(t, testSet)
	seen := map[wide]bool{}
	part := make([]byte, must[int](t)(Size(testSet, KindOpening, g.m.top, 64, true)))
	for range 2 {
		x := g.encrypt(t, []float64{3})
		check(t, g.secrets[0].OpeningPart(part, x, label("s"), 64, 4))
		for _, noise := range g.secrets[0].masksOf(t, part, KindOpening, x, 1) {
			if seen[noise] {
				t.Fatal("flooding was used twice")
			}
			seen[noise] = true
		}
	}
}

// A seed that serves two things by mistake does not show how they differ.
func TestASeedForTwoDoesNotShowTheirDifference(t *testing.T) {
	g := groupOf(t, testSet)
	one, two := []float64{1, 2, 3}, []float64{1, 2, 4}
	ok := must[*Ciphertext](t)
	x, y := ok(g.keys.Encrypt(one, 5, label("s"), 0)), ok(g.keys.Encrypt(two, 5, label("s"), 0))
	if same(x.ct.Value[1], y.ct.Value[1]) > 0.01 {
		t.Error("one seed encrypted two vectors alike")
	}
	xs, ys := ok(g.keys.Rerandomised(x, label("s"), 0)), ok(g.keys.Rerandomised(y, label("s"), 0))
	r := g.m.ring(5)
	for half := range 2 {
		first, second := ring.NewPoly(g.m.n, 5), ring.NewPoly(g.m.n, 5)
		r.Sub(xs.ct.Value[half], x.ct.Value[half], first)
		r.Sub(ys.ct.Value[half], y.ct.Value[half], second)
		if same(first, second) > 0.01 {
			t.Errorf("one seed re-randomised two ciphertexts alike in half %d", half)
		}
	}
}
