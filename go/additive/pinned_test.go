package additive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/core/fault"
)

// pins are what messages of given seeds were when they were written down: a part of a domain that gets lost, or one
// stream for two purposes, gives other bytes. Two groups of c1 and a width of two, in every form.
var pins = map[uint8][]string{
	testSingle:             {"3641115ddedc", "d72216716528", "141476b150a4"},
	testSingleResidues:     {"407ace8e6841", "162baa2856fa", "8d46b69fd0e6"},
	testCollective:         {"3bcb8d1debd0", "6af40d0437e2", "b491b3bce113", "12575918572f"},
	testCollectiveResidues: {"1e8064daf9f9", "500a118adeb3", "5d4054201a15", "6382909e4ce9"},
}

func TestMessagesOfASeedArePinned(t *testing.T) {
	for _, set := range []uint8{testSingle, testSingleResidues, testCollective, testCollectiveResidues} {
		ctx, err := contextOf(set, true)
		must(t, err)
		var found []string
		note := func(data []byte) {
			digest := sha256.Sum256(data)
			found = append(found, fmt.Sprintf("%x", digest[:6]))
		}
		values := make([]uint64, limbs*(2*ctx.n/ctx.Coefficients+ctx.n/2))
		if ctx.MaxMembers == 0 {
			_, public, secret, publicMessage := keyPair(t, set, 2, 'p')
			note(secret)
			note(publicMessage)
			note(encrypt(t, public, values, 'p'))
		} else {
			g := newGroup(t, set, 2, 2)
			facts := Facts{Kind: uint64(kindKeyShare), Set: uint64(set), Width: 2}
			share := messageFor(t, facts)
			facts.Kind = uint64(kindSecretShare)
			must(t, KeyShare(set, 2, seedOf('r'), seedOf('k', 0), messageFor(t, facts), share, true))
			note(share)
			note(g.public.id[:])
			ciphertext := encrypt(t, g.public, values, 'p')
			note(ciphertext)
			note(g.share(t, 1, ciphertext))
		}
		if fmt.Sprint(found) != fmt.Sprint(pins[set]) {
			t.Errorf("set %d: %q", set, found)
		}
	}
}

// keyShare is what a member sends for a reference.
func keyShare(t *testing.T, width int, reference, member byte) []byte {
	t.Helper()
	facts := Facts{Kind: uint64(kindKeyShare), Set: testCollective, Width: uint64(width)}
	share := messageFor(t, facts)
	facts.Kind = uint64(kindSecretShare)
	must(t, KeyShare(testCollective, width, seedOf(reference), seedOf('k', member), messageFor(t, facts), share, true))
	return share
}

// reader is somebody who takes a message, and the bytes of its header that mean nothing to it.
type reader struct {
	name    string
	message []byte
	take    func(message []byte) error
	free    []int
}

// Every byte of every header is checked by whoever reads the message, also where the checksum fits.
func TestHeadersAreReadToTheLastByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := randomValues(rng, 1500)
	room := make([]uint64, len(values))
	sk, pk, secret, public := keyPair(t, testSingle, 2, 'a')
	one := encrypt(t, pk, values, 1)
	g := newGroup(t, testCollective, 2, 2)
	sealed := encrypt(t, g.public, values, 1)
	parts := [][]byte{g.share(t, 0, sealed), g.share(t, 1, sealed)}
	keyShares := [][]byte{keyShare(t, 2, 'r', 0), keyShare(t, 2, 'r', 1)}
	facts := Facts{Kind: uint64(kindPublicKey), Set: testCollective, Width: 2, Count: 2}
	digest := sha256.Sum256(sealed)
	shareRoom := make([]byte, len(parts[0]))
	count := []int{4, 5, 6, 7} // how many were added up: it only makes later sums stricter
	id := []int{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}
	adder := NewAdder(true)
	must(t, adder.Add(one))
	readers := []reader{
		{"a ciphertext, decrypted", one, func(m []byte) error { return sk.Decrypt(m, room, true) }, count},
		{"a ciphertext, added", one, adder.Add, count},
		{"a ciphertext, combined", sealed, func(m []byte) error { return g.public.Combine(m, parts, room, true) }, nil},
		{"a ciphertext, helped to open", sealed, func(m []byte) error {
			return g.secrets[0].DecryptionShare(g.public, m, digest[:], shareRoom, true)
		}, count},
		{"a decryption share", parts[0], func(m []byte) error {
			return g.public.Combine(sealed, [][]byte{m, parts[1]}, room, true)
		}, nil},
		{"a key share", keyShares[0], func(m []byte) error {
			return Aggregate([][]byte{m, keyShares[1]}, messageFor(t, facts), true)
		}, nil},
		{"a public key", public, func(m []byte) error { _, err := OpenPublic(m, true); return err }, nil},
		{"a secret key", secret, func(m []byte) error { _, err := OpenSecret(m, true); return err }, append(id, 2, 3)},
	}
	for _, r := range readers {
		r.check(t)
	}
}

// check alters every byte that means something.
func (r reader) check(t *testing.T) {
	t.Helper()
	must(t, r.take(bytes.Clone(r.message)))
	for at := range headerSize {
		if slices.Contains(r.free, at) {
			continue
		}
		for _, flip := range []byte{1, 2, 0x80, 0xff} {
			changed := bytes.Clone(r.message)
			changed[at] ^= flip
			if at < headerSize-4 {
				binary.LittleEndian.PutUint32(changed[32:], checksum(changed))
			}
			if r.take(changed) == nil {
				t.Errorf("%s: byte %d of its header may be anything (%x)", r.name, at, flip)
			}
		}
	}
	if r.take(r.message[:len(r.message)-1]) == nil || r.take(append(bytes.Clone(r.message), 0)) == nil {
		t.Errorf("%s of another length was read", r.name)
	}
}

// A residue at or above its modulus is another name of a smaller one: two messages would be one key.
func TestResiduesOfKeysAreBelowTheirModuli(t *testing.T) {
	_, _, _, public := keyPair(t, testSingle, 1, 'a')
	ctx, err := contextOf(testSingle, true)
	must(t, err)
	start := headerSize + SeedBytes
	for i, r := range ctx.rings {
		for _, at := range []int{0, 1, ctx.n - 1} {
			for value, good := range map[uint64]bool{0: true, r.Modulus - 1: true, r.Modulus: false, r.Modulus + 1: false, 1<<56 - 1: false} {
				changed := bytes.Clone(public)
				var word [8]byte
				binary.LittleEndian.PutUint64(word[:], value)
				copy(changed[start+(i*ctx.n+at)*residueBytes:], word[:residueBytes])
				h, _, err := peek(changed, true)
				must(t, err)
				h.key = identify(h, changed[headerSize:])
				h.write(changed)
				if _, err := OpenPublic(changed, true); (err == nil) != good {
					t.Errorf("%x modulo %x: %v", value, r.Modulus, err)
				}
			}
		}
	}
}

func TestSharesOfTwoKeysAreNotAddedUp(t *testing.T) {
	shares := [][]byte{keyShare(t, 1, 'r', 0), keyShare(t, 1, 'r', 1), keyShare(t, 1, '2', 2)}
	out := messageFor(t, Facts{Kind: uint64(kindPublicKey), Set: testCollective, Width: 1, Count: 2})
	must(t, Aggregate(shares[:2], out, true))
	for _, list := range [][][]byte{{shares[0], shares[2]}, {shares[2], shares[0]}} {
		if err := Aggregate(list, out, true); fault.KindOf(err) != fault.Key {
			t.Errorf("shares for two references were added up: %v", err)
		}
	}
}

func TestOnlyAWholeKeyDecryptsAndOnlyAShareHelps(t *testing.T) {
	g := newGroup(t, testCollective, 1, 2)
	sealed := encrypt(t, g.public, make([]uint64, limbs), 1)
	room := make([]uint64, limbs)
	if err := g.secrets[0].Decrypt(sealed, room, true); fault.KindOf(err) != fault.Argument {
		t.Errorf("a share decrypts: %v", err)
	}
	whole, public, _, _ := keyPair(t, testSingle, 1, 'a')
	one := encrypt(t, public, make([]uint64, limbs), 1)
	digest := sha256.Sum256(one)
	if err := whole.DecryptionShare(public, one, digest[:], nil, true); fault.KindOf(err) != fault.Key {
		t.Errorf("a whole key helps: %v", err)
	}
}

// A carry has a byte: of more summands than it counts, a sum of integers would be a wrong one.
func TestCarriesAreOfAsManySummandsAsAByteCounts(t *testing.T) {
	g := newGroup(t, testCollective, 1, 2)
	one := encrypt(t, g.public, make([]uint64, limbs), 1)
	adder := NewAdder(true)
	for range 2 {
		must(t, adder.Add(one))
	}
	room := make([]byte, len(adder.carries))
	for summed, good := range map[int]bool{1: true, 256: true, 257: false, 1024: false} {
		adder.summed = summed
		if err := adder.Carries(room); (err == nil) != good {
			t.Errorf("carries of %d summands: %v", summed, err)
		}
	}
	adder.summed = 2
	if adder.Carries(room[1:]) == nil || NewAdder(true).Carries(nil) == nil {
		t.Error("carries of another length, or of nothing")
	}
}

func TestWhatIsOpenedIsWithinAQuarterOfAWholeNumber(t *testing.T) {
	const half, quarter = 1 << 63, 1 << 62
	for below, sound := range map[uint64]bool{
		half: true, half - quarter: true, half + quarter - 1: true, half + quarter: false, half - quarter - 1: false, 0: false, 1<<64 - 1: false,
	} {
		if withinQuarter(below) != sound {
			t.Errorf("%x: %v", below, !sound)
		}
	}
}

// What a secret was computed in is lent to the next who asks, and lies in memory until then.
func TestWhatASecretWasComputedInIsWiped(t *testing.T) {
	ctx, err := contextOf(testCollective, true)
	must(t, err)
	list := ctx.take(2)
	for _, s := range list {
		for i := range s.poly {
			s.poly[i] = 7
		}
		for i := range s.stream {
			s.stream[i] = 7
		}
		for i := range s.small {
			s.small[i] = 7
		}
	}
	ctx.put(list)
	for i, s := range list {
		if slices.Max(s.poly) != 0 || slices.Max(s.stream) != 0 || slices.Max(s.small) != 0 {
			t.Errorf("something of worker %d is left", i)
		}
	}
}

// Values that leave room for any carry are refused too: a total of more is wrong, or opens as noise.
func TestNoMoreSummandsThanTheSetHasNoiseFor(t *testing.T) {
	g := newGroup(t, testCollective, 1, 2)
	zeros, out := make([]uint64, limbs), encrypt(t, g.public, make([]uint64, limbs), 1)
	for summands, good := range map[int]bool{-1: false, 0: false, 1: true, 1024: true, 1025: false} {
		if err := g.public.Encrypt(zeros, summands, seedOf(2), out); (err == nil) != good {
			t.Errorf("%d summands: %v", summands, err)
		}
	}
}
