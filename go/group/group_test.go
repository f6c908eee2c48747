package group

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"testing"

	"filippo.io/edwards25519"
	"github.com/bwesterb/go-ristretto"

	"atoll/core/fault"
)

func fresh(t testing.TB) []byte {
	t.Helper()
	seed := make([]byte, SeedSize)
	if _, err := rand.Read(seed); err != nil {
		t.Fatal(err)
	}
	return seed
}

// Multiples 0 to 3 of the generator, RFC 9496, appendix A.1.
func TestMultiplesOfTheGenerator(t *testing.T) {
	want := []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
		"6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
		"94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
	}
	at := edwards25519.NewIdentityPoint()
	for i, text := range want {
		var found [ElementSize]byte
		encode(found[:], at)
		if hex.EncodeToString(found[:]) != text {
			t.Errorf("multiple %d is %x", i, found)
		}
		at.Add(at, edwards25519.NewGeneratorPoint())
	}
}

// Bad encodings, RFC 9496, appendix A.2: not canonical, negative, not on the curve.
func TestMalformedElementsAreRefused(t *testing.T) {
	for _, text := range []string{
		"00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
		"4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f",
		"de6a7b00deadc788eb6b6c8d20c0ae96c2f2019078fa604fee5b87d6e989ad87",
		"bcab477be20861e01e4a0e295284146a510150d9817763caf1a6f4b422d67042",
		"2a292df7e32cababbd9de088d1d1abec9fc0440f637ed2fba145094dc14bea08",
		"f4a9e534fc0d216c44b218fa0c42d99635a0127ee2e53c712f70609649fdff22",
		"8268436f8c4126196cf64b3c7ddbda90746a378625f9813dd9b8457077256731",
		"2810e5cbc2cc4d4eece54f61c6f69758e289aa7ab440b3cbeaa21995c2f4232b",
	} {
		raw, _ := hex.DecodeString(text)
		if _, err := decode(raw); fault.KindOf(err) != fault.Message {
			t.Errorf("%s was read", text)
		}
	}
	if _, err := decodeKey(make([]byte, ElementSize)); fault.KindOf(err) != fault.Message {
		t.Error("the identity was taken as a key")
	}
}

// The encoding is that of another implementation.
func TestAnotherImplementationReadsTheSameElements(t *testing.T) {
	for range 200 {
		var theirs ristretto.Point
		theirs.Rand()
		point, err := decode(theirs.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		double := new(edwards25519.Point).Add(point, point)
		var ours [ElementSize]byte
		encode(ours[:], double)
		if !bytes.Equal(ours[:], new(ristretto.Point).Double(&theirs).Bytes()) {
			t.Fatal("twice an element is not the same element")
		}
	}
}

func TestPiecesComeBack(t *testing.T) {
	pieces := append(fresh(t), fresh(t)...)[:60]
	pieces = append(pieces, make([]byte, 12)...)
	pieces = append(pieces, bytes.Repeat([]byte{255}, 12)...)
	for i := 0; i < len(pieces); i += PieceSize {
		point, err := embed(pieces[i : i+PieceSize])
		if err != nil {
			t.Fatal(err)
		}
		back := make([]byte, PieceSize)
		if err := extract(back, point); err != nil || !bytes.Equal(back, pieces[i:i+PieceSize]) {
			t.Errorf("%x came back as %x (%v)", pieces[i:i+PieceSize], back, err)
		}
	}
	if extract(make([]byte, PieceSize), edwards25519.NewGeneratorPoint()) == nil {
		t.Error("the generator holds a value")
	}
}

type party struct{ secret, public []byte }

func parties(t testing.TB, n int) []party {
	t.Helper()
	all := make([]party, n)
	for i := range all {
		all[i] = party{make([]byte, SecretSize), make([]byte, PublicSize)}
		if err := Keygen(fresh(t), []byte("context"), all[i].secret, all[i].public); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func keysOf(all []party) [][]byte {
	keys := make([][]byte, len(all))
	for i, p := range all {
		keys[i] = p.public
	}
	return keys
}

func TestLayersComeOffOneByOne(t *testing.T) {
	all := parties(t, 4) // all[0] is the mediator
	const items, columns = 6, 5
	pieces := make([]byte, items*columns*PieceSize)
	if _, err := rand.Read(pieces); err != nil {
		t.Fatal(err)
	}
	batch := make([]byte, items*columns*CipherSize)
	if err := Wrap(keysOf(all), pieces, fresh(t), batch); err != nil {
		t.Fatal(err)
	}
	for place := len(all) - 1; place > 0; place-- {
		out := make([]byte, len(batch))
		if err := Strip(all[place].secret, keysOf(all[:place]), items, batch, fresh(t), out); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(out); i += ElementSize { // no block is seen on both sides of a hop
			if bytes.Contains(batch, out[i:i+ElementSize]) {
				t.Fatal("an element went through a hop unchanged")
			}
		}
		batch = out
	}
	back := make([]byte, len(pieces))
	if err := Read(all[0].secret, batch, back); err != nil {
		t.Fatal(err)
	}
	for column := range columns {
		sent, found := map[string]int{}, map[string]int{}
		for row := range items {
			at := (row*columns + column) * PieceSize
			sent[string(pieces[at:at+PieceSize])]++
			found[string(back[at:at+PieceSize])]++
		}
		for piece, count := range sent {
			if found[piece] != count {
				t.Fatalf("column %d holds other pieces than were sent", column)
			}
		}
	}
}

// Two pieces or two hops under one scalar could be compared.
func TestEveryCiphertextHasAScalarOfItsOwn(t *testing.T) {
	all := parties(t, 2)
	const columns = 8
	batch, out := make([]byte, columns*CipherSize), make([]byte, columns*CipherSize)
	if err := Wrap(keysOf(all), make([]byte, columns*PieceSize), fresh(t), batch); err != nil {
		t.Fatal(err)
	}
	if err := Strip(all[1].secret, keysOf(all[:1]), 1, batch, fresh(t), out); err != nil { // one row: no permutation
		t.Fatal(err)
	}
	wrapped, added := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(batch); i += CipherSize {
		before, _ := decode(batch[i : i+ElementSize])
		after, _ := decode(out[i : i+ElementSize])
		var difference [ElementSize]byte
		encode(difference[:], new(edwards25519.Point).Subtract(after, before))
		wrapped[string(batch[i:i+ElementSize])], added[string(difference[:])] = true, true
	}
	if len(wrapped) != columns || len(added) != columns {
		t.Errorf("%d and %d scalars for %d ciphertexts", len(wrapped), len(added), columns)
	}
}

func TestColumnsMoveApart(t *testing.T) {
	all := parties(t, 2)
	const items, columns = 16, 4
	pieces := make([]byte, items*columns*PieceSize)
	for i := range items * columns {
		pieces[i*PieceSize] = byte(i / columns) // its row
	}
	batch, out := make([]byte, items*columns*CipherSize), make([]byte, items*columns*CipherSize)
	if err := Wrap(keysOf(all), pieces, fresh(t), batch); err != nil {
		t.Fatal(err)
	}
	if err := Strip(all[1].secret, keysOf(all[:1]), items, batch, fresh(t), out); err != nil {
		t.Fatal(err)
	}
	if err := Read(all[0].secret, out, pieces); err != nil {
		t.Fatal(err)
	}
	orders := map[[items]byte]bool{}
	for column := range columns {
		var order [items]byte
		for row := range items {
			order[row] = pieces[(row*columns+column)*PieceSize]
		}
		orders[order] = true
	}
	if len(orders) != columns { // two equal ones of 16!: never
		t.Errorf("%d permutations of %d columns", len(orders), columns)
	}
}

func TestProofsOfPossession(t *testing.T) {
	one := parties(t, 1)[0]
	if err := CheckKey(one.public, []byte("context")); err != nil {
		t.Fatal(err)
	}
	if CheckKey(one.public, []byte("other")) == nil {
		t.Error("a proof for another context was taken")
	}
	for i := range one.public {
		bad := bytes.Clone(one.public)
		bad[i] ^= 1
		if CheckKey(bad, []byte("context")) == nil {
			t.Errorf("a key with byte %d changed was taken", i)
		}
	}
	// A key that cancels another one: nobody can prove that it knows its secret.
	var cancelling [ElementSize]byte
	key, _ := decode(one.public[:32])
	encode(cancelling[:], new(edwards25519.Point).Negate(key))
	rogue := append(cancelling[:], one.public[32:]...)
	if CheckKey(rogue, []byte("context")) == nil {
		t.Error("a rogue key was taken")
	}
	if _, err := joint([][]byte{one.public, rogue}); err == nil {
		t.Error("keys that cancel each other were taken")
	}
}

func TestPermutationsAreUniform(t *testing.T) {
	const items, runs = 4, 24_000
	places, err := permutations(fresh(t), items, runs)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[[items]int]int{}
	for run := range runs {
		counts[[items]int(places[run*items:(run+1)*items])]++
	}
	statistic := 0.0
	for _, count := range counts {
		off := float64(count) - runs/24.0
		statistic += off * off / (runs / 24.0)
	}
	if len(counts) != 24 || statistic > 62 { // 23 degrees of freedom, p about 2e-5
		t.Errorf("%d of 24 permutations, chi-square %.1f", len(counts), statistic)
	}
}

func BenchmarkHop(b *testing.B) {
	all := parties(b, 3)
	const items, columns = 6, 100
	pieces, batch := make([]byte, items*columns*PieceSize), make([]byte, items*columns*CipherSize)
	if err := Wrap(keysOf(all), pieces, fresh(b), batch); err != nil {
		b.Fatal(err)
	}
	out, seed := make([]byte, len(batch)), fresh(b)
	b.ResetTimer()
	for range b.N {
		if err := Strip(all[2].secret, keysOf(all[:2]), items, batch, seed, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items*columns), "ns/element")
}
