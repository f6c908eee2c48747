package additive

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"atoll/core/fault"
)

// The ids of the parameter table.
const (
	single         = 1
	collective     = 2
	testSingle     = 129
	testCollective = 130

	singleResidues         = 5
	collectiveResidues     = 6
	testSingleResidues     = 133
	testCollectiveResidues = 134
)

func seedOf(parts ...byte) []byte {
	digest := sha256.Sum256(parts)
	return digest[:]
}

// randomValues are of either sign and below 2^190, as rows with residues need them.
func randomValues(rng *rand.Rand, n int) []uint64 {
	values := make([]uint64, limbs*n)
	for i := range values {
		values[i] = rng.Uint64()
	}
	for i := 2 * n; i < len(values); i++ {
		values[i] = uint64(int64(values[i]) >> 1)
	}
	return values
}

// addInto is the reference: big integers modulo 2^192.
func addInto(total, values []uint64) {
	n := len(total) / limbs
	for v := range n {
		x, y := big.NewInt(0), big.NewInt(0)
		for l := limbs - 1; l >= 0; l-- {
			x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(total[l*n+v]))
			y.Lsh(y, 64).Add(y, new(big.Int).SetUint64(values[l*n+v]))
		}
		for l, word := range wordsOf(x.Add(x, y), limbs) {
			total[l*n+v] = word
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func messageFor(t testing.TB, facts Facts) []byte {
	t.Helper()
	size, err := Size(facts, true)
	must(t, err)
	return make([]byte, size)
}

func keyPair(t testing.TB, set uint8, width int, tag byte) (*SecretKey, *PublicKey, []byte, []byte) {
	t.Helper()
	secret := messageFor(t, Facts{Kind: uint64(kindSecretKey), Set: uint64(set), Width: uint64(width)})
	public := messageFor(t, Facts{Kind: uint64(kindPublicKey), Set: uint64(set), Width: uint64(width)})
	must(t, Keygen(set, width, seedOf(tag), secret, public, true))
	sk, err := OpenSecret(secret, true)
	must(t, err)
	pk, err := OpenPublic(public, true)
	must(t, err)
	return sk, pk, secret, public
}

func encrypt(t testing.TB, key *PublicKey, values []uint64, tag byte) []byte {
	t.Helper()
	facts := Facts{Kind: uint64(kindCiphertext), Set: uint64(key.ctx.ID), Width: uint64(key.width), Count: 1,
		Values: uint64(len(values) / limbs)}
	out := messageFor(t, facts)
	must(t, key.Encrypt(values, 1, seedOf(tag, 'e'), out))
	return out
}

func sum(t testing.TB, ciphertexts ...[]byte) []byte {
	t.Helper()
	adder := NewAdder(true)
	for _, ciphertext := range ciphertexts {
		must(t, adder.Add(ciphertext))
	}
	out := make([]byte, adder.Size())
	must(t, adder.Finish(out))
	return out
}

func equal(t testing.TB, got, want []uint64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("limb %d is %#x, not %#x", i, got[i], want[i])
		}
	}
}

func TestSumsAreExactWithOneKeyHolder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		set        uint8
		width, n   int
		ciphertext int
	}{
		{testSingle, 1, 1, 2}, {testSingle, 1, 1024, 3}, {testSingle, 2, 1025, 3}, {testSingle, 3, 5000, 4},
		{testSingle, 16, 9000, 2}, {testSingle, 2, 700, 50}, {single, 1, 4095, 3}, {single, 2, 20000, 3},
		{testSingleResidues, 1, 1, 2}, {testSingleResidues, 3, 777, 50}, {singleResidues, 2, 4095, 3},
	} {
		sk, pk, _, _ := keyPair(t, c.set, c.width, 'a')
		total := make([]uint64, limbs*c.n)
		var list [][]byte
		for i := range c.ciphertext {
			values := randomValues(rng, c.n)
			addInto(total, values)
			list = append(list, encrypt(t, pk, values, byte(i)))
		}
		got := make([]uint64, limbs*c.n)
		must(t, sk.Decrypt(sum(t, list...), got, true))
		equal(t, got, total)
	}
}

type group struct {
	secrets []*SecretKey
	public  *PublicKey
}

func newGroup(t testing.TB, set uint8, width, members int) group {
	t.Helper()
	facts := Facts{Set: uint64(set), Width: uint64(width)}
	var g group
	var shares [][]byte
	for i := range members {
		facts.Kind = uint64(kindSecretShare)
		secret := messageFor(t, facts)
		facts.Kind = uint64(kindKeyShare)
		share := messageFor(t, facts)
		must(t, KeyShare(set, width, seedOf('r'), seedOf('k', byte(i)), secret, share, true))
		sk, err := OpenSecret(secret, true)
		must(t, err)
		g.secrets, shares = append(g.secrets, sk), append(shares, share)
	}
	facts.Kind, facts.Count = uint64(kindPublicKey), uint64(members)
	public := messageFor(t, facts)
	must(t, Aggregate(shares, public, true))
	var err error
	g.public, err = OpenPublic(public, true)
	must(t, err)
	return g
}

func (g group) share(t testing.TB, member int, ciphertext []byte) []byte {
	t.Helper()
	facts, err := Inspect(ciphertext, true)
	must(t, err)
	facts.Kind, facts.Count = uint64(kindDecryptionShare), 0
	out := messageFor(t, facts)
	digest := sha256.Sum256(ciphertext)
	must(t, g.secrets[member].DecryptionShare(g.public, ciphertext, digest[:], out, true))
	return out
}

func TestSumsAreExactWithACollectiveKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		set               uint8
		width, n, members int
	}{{testCollective, 1, 1, 2}, {testCollective, 2, 3000, 3}, {testCollective, 4, 9999, 5},
		{testCollective, 1, 100, 50}, {collective, 2, 20000, 3},
		{testCollectiveResidues, 2, 1000, 3}, {collectiveResidues, 1, 4095, 3}} {
		g := newGroup(t, c.set, c.width, c.members)
		total := make([]uint64, limbs*c.n)
		var list [][]byte
		for i := range c.members {
			values := randomValues(rng, c.n)
			addInto(total, values)
			list = append(list, encrypt(t, g.public, values, byte(i)))
		}
		ciphertext := sum(t, list...)
		var shares [][]byte
		for i := range c.members {
			shares = append(shares, g.share(t, i, ciphertext))
		}
		got := make([]uint64, limbs*c.n)
		must(t, g.public.Combine(ciphertext, shares, got, true))
		equal(t, got, total)
		// All but one know nothing: what they compute is off in every coefficient.
		if err := g.public.Combine(ciphertext, shares[1:], got, true); fault.KindOf(err) != fault.Argument {
			t.Fatalf("a missing share gave %v", err)
		}
	}
}

func TestOneMembersShareDoesNotStandForTwo(t *testing.T) {
	g := newGroup(t, testCollective, 1, 3)
	ciphertext := encrypt(t, g.public, randomValues(rand.New(rand.NewPCG(7, 8)), 10), 1)
	first, second := g.share(t, 0, ciphertext), g.share(t, 1, ciphertext)
	err := g.public.Combine(ciphertext, [][]byte{first, second, first}, make([]uint64, limbs*10), true)
	if fault.KindOf(err) != fault.Message || !strings.Contains(err.Error(), "the same member") {
		t.Fatalf("a share that came twice gave %v", err)
	}
}

func TestADecryptionShareIsAFunctionOfSecretAndC1(t *testing.T) {
	g := newGroup(t, testCollective, 2, 2)
	rng := rand.New(rand.NewPCG(5, 6))
	ciphertext := encrypt(t, g.public, randomValues(rng, 3000), 1)
	first := g.share(t, 0, ciphertext)
	if !bytes.Equal(first, g.share(t, 0, ciphertext)) {
		t.Fatal("two runs made two shares")
	}
	// Another c0 beside the same c1 must not get other smudging.
	twin := append([]byte(nil), ciphertext...)
	twin[len(twin)-1] ^= 1
	h, _, err := peek(twin, true)
	must(t, err)
	h.write(twin)
	body := headerSize + digestSize
	if !bytes.Equal(first[body:], g.share(t, 0, twin)[body:]) {
		t.Fatal("the smudging depends on more than c1")
	}
}

// The noise that decryption sees must stay below what the parameter table's
// limits allow for: measured here at one summand, per unit of 2^-64.
func TestNoiseHasTheWidthOfTheTable(t *testing.T) {
	sk, pk, _, _ := keyPair(t, single, 1, 'n')
	ctx := pk.ctx
	values := make([]uint64, limbs*ctx.n)
	message := encrypt(t, pk, values, 7)
	h, _, err := peek(message, true)
	must(t, err)
	squares, worst := 0.0, 0.0
	c0 := message[headerSize+ctx.n*ctx.CipherBytes:]
	must(t, sk.products(h, message[headerSize:], func(s *scratch, _ int) error {
		for j := range ctx.n {
			tn := ctx.turnOf(s.poly, j)
			other := unpack(c0[j*ctx.CipherBytes:], ctx.CipherBytes)
			tn.add(&other)
			noise := float64(int64(tn[2])) / (1 << 63) / 2
			squares += noise * noise
			worst = max(worst, noise, -noise)
		}
		return nil
	}))
	variance := squares / float64(ctx.n)
	// Predicted: (2·N·(2/3)·10.5·2^-40 + N·(2/3)/12·2^-32), in values squared.
	n := float64(ctx.n)
	predicted := 2*n*2/3*10.5/(1<<40) + n*2/3/12/(1<<32)
	if variance < predicted/1.5 || variance > predicted*1.5 {
		t.Fatalf("noise variance %g, predicted %g", variance, predicted)
	}
	// 1024 summands widen it 32 times; a quarter is where decryption refuses.
	if deviation := math.Sqrt(variance) * 32; 15*deviation > 0.25 || worst > 8*math.Sqrt(variance) {
		t.Fatalf("a deviation of %g at 1024 summands, or %g at one, is too much", deviation, worst)
	}
}

func TestSmudgingIsUniformOnItsBits(t *testing.T) {
	ctx, err := contextOf(collective, false)
	must(t, err)
	random := make([]byte, 16*4096)
	expand(seed(seedOf('s')), random)
	var mean, squares float64
	for j := range 4096 {
		tn := ctx.smudge(random[16*j:])
		value := float64(int64(tn[5])) // the sign reaches the top
		if value != 0 && value != -1 {
			t.Fatal("smudging is wider than its bits")
		}
		x := float64(int64(tn[2])) / (1 << 55) // 80 of 88 bits below the value: 2^-8, centred
		mean, squares = mean+x/4096, squares+x*x/4096
	}
	if mean < -0.05 || mean > 0.05 || squares < 0.31 || squares > 0.355 {
		t.Fatalf("mean %g and mean square %g are not those of a uniform on [-1, 1)", mean, squares)
	}
}

func TestErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	sk, pk, secret, public := keyPair(t, testSingle, 2, 'a')
	other, otherPublic, _, _ := keyPair(t, testSingle, 2, 'b')
	values := randomValues(rng, 1500)
	good := encrypt(t, pk, values, 1)
	foreign := encrypt(t, otherPublic, values, 1)
	got := make([]uint64, len(values))
	expect := func(name string, want fault.Kind, err error) {
		t.Helper()
		if fault.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect("foreign", fault.Key, other.Decrypt(good, got, true))
	expect("truncated", fault.Message, sk.Decrypt(good[:len(good)-1], got, true))
	expect("empty", fault.Message, sk.Decrypt(nil, got, true))
	flipped := append([]byte(nil), good...)
	flipped[100] ^= 4
	expect("corrupted", fault.Message, sk.Decrypt(flipped, got, true))
	h, _, err := peek(flipped, true)
	must(t, err)
	copy(flipped[headerSize:], bytes.Repeat([]byte{0xa5}, 1000))
	h.write(flipped)
	expect("corrupted c1 with a right checksum", fault.Message, sk.Decrypt(flipped, got, true))
	expect("room", fault.Argument, sk.Decrypt(good, got[:3], true))
	expect("insecure set", fault.Argument, sk.Decrypt(good, got, false))
	expect("kind", fault.Message, sk.Decrypt(public, got, true))
	adder := NewAdder(true)
	expect("empty sum", fault.Argument, adder.Finish(nil))
	must(t, adder.Add(good))
	expect("foreign summand", fault.Key, adder.Add(foreign))
	expect("other length", fault.Message, adder.Add(encrypt(t, pk, values[:3], 1)))
	_, err = OpenSecret(public, true)
	expect("public as secret", fault.Message, err)
	_, err = OpenPublic(secret, true)
	expect("secret as public", fault.Message, err)
	out := make([]byte, len(good))
	expect("short seed", fault.Argument, pk.Encrypt(values, 1, []byte{1}, out))
	expect("no values", fault.Argument, pk.Encrypt(nil, 1, seedOf(), out))
	top := make([]uint64, len(values))
	top[len(top)-1] = 1 << 62
	expect("headroom", fault.Range, pk.Encrypt(top, 3, seedOf(), out))
	must(t, pk.Encrypt(top, 1, seedOf(), out))
	expect("too many summands", fault.Range, pk.Encrypt(top, 1025, seedOf(), out))
}

func TestASumBeyondTheSummandsIsRefused(t *testing.T) {
	_, pk, _, _ := keyPair(t, testSingle, 1, 'a')
	one := encrypt(t, pk, make([]uint64, limbs), 1)
	list := make([][]byte, 1024)
	for i := range list {
		list[i] = one
	}
	full := sum(t, list...)
	adder := NewAdder(true)
	must(t, adder.Add(full))
	if err := adder.Add(one); fault.KindOf(err) != fault.Range {
		t.Fatal(err)
	}
}

func TestSecretKeysDoNotPrint(t *testing.T) {
	sk, _, _, _ := keyPair(t, testSingle, 1, 'a')
	if sk.String() != "additive.SecretKey" || sk.GoString() != sk.String() {
		t.Fatal(sk)
	}
}

func BenchmarkEncrypt190653(b *testing.B) {
	_, pk, _, _ := keyPair(b, single, 4, 'a')
	values := randomValues(rand.New(rand.NewPCG(1, 1)), 190653)
	var message []byte
	for b.Loop() {
		message = encrypt(b, pk, values, 1)
	}
	b.ReportMetric(float64(len(message))/1e6, "MB")
}

func BenchmarkDecrypt190653(b *testing.B) {
	sk, pk, _, _ := keyPair(b, single, 4, 'a')
	values := randomValues(rand.New(rand.NewPCG(1, 1)), 190653)
	message := encrypt(b, pk, values, 1)
	for b.Loop() {
		must(b, sk.Decrypt(message, values, true))
	}
}

func BenchmarkAdd190653(b *testing.B) {
	_, pk, _, _ := keyPair(b, single, 4, 'a')
	message := encrypt(b, pk, randomValues(rand.New(rand.NewPCG(1, 1)), 190653), 1)
	for b.Loop() {
		sum(b, message, message, message)
	}
}
