package group

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
	"github.com/bwesterb/go-ristretto"

	"atoll/core/fault"
)

// What follows from seeds, as it was when it was written down: one stream for two purposes, or a part of a hash that
// gets lost, gives other bytes.
func TestWhatFollowsFromASeedIsPinned(t *testing.T) {
	var found []string
	note := func(data []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256(data)
		found = append(found, fmt.Sprintf("%x", digest[:6]))
		return data
	}
	secret, public := make([]byte, SecretSize), make([]byte, PublicSize)
	err := Keygen(seeded(1), []byte("context"), secret, public)
	note(secret, err)
	note(public, nil)
	below, other := make([]byte, SecretSize), make([]byte, PublicSize)
	note(other, Keygen(seeded(2), []byte("context"), below, other))
	batch := make([]byte, 4*CipherSize)
	note(batch, Wrap([][]byte{public, other}, make([]byte, 4*PieceSize), seeded(3), batch))
	stripped := make([]byte, len(batch))
	note(stripped, Strip(secret, [][]byte{other}, 2, batch, seeded(4), stripped))
	elements := make([]byte, 2*ElementSize)
	note(elements, Blind(seeded(5), make([]byte, 2*HashSize), elements))
	challenge, err := hashToScalar([]byte("ab"), []byte("c"))
	note(challenge.Bytes(), err)
	want := []string{"af1e80182611", "1af4100acbe6", "2aa343dfdee9", "bf937bf16048", "0a5263f83e32", "26b8c1383f9a", "afa1113ddfba"}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("%q", found)
	}
}

// A proof of which the nonce is the key, or anything else that is known, tells the key: z = c r + nonce.
func TestAProofTellsNothingOfItsKey(t *testing.T) {
	secret, public := make([]byte, SecretSize), make([]byte, PublicSize)
	for mark := range byte(20) {
		if err := Keygen(seeded(mark), nil, secret, public); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(public[:32], public[32:64]) || bytes.Equal(secret, public[64:]) {
			t.Fatal("the nonce is the key, or the answer is")
		}
	}
}

func TestPartsOfAChallengeDoNotRunTogether(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][][]byte{{[]byte("ab"), []byte("c")}, {[]byte("a"), []byte("bc")}, {[]byte("abc")}, {[]byte("abc"), nil}} {
		scalar, err := hashToScalar(parts...)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(scalar.Bytes())] = true
	}
	if len(seen) != 4 {
		t.Error("two challenges of different parts are one")
	}
}

// Two purposes of one seed have streams of their own.
func TestPurposesHaveStreamsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, purpose := range []string{"key", "wrap", "strip", "shuffle", "intersection"} {
		source, err := stream(seeded(1), purpose)
		if err != nil {
			t.Fatal(err)
		}
		var word [16]byte
		source.XORKeyStream(word[:], word[:])
		seen[string(word[:])] = true
	}
	if len(seen) != 5 {
		t.Error("two purposes share a stream")
	}
}

// Of a ciphertext whose first half is the identity, everybody reads the second.
func TestACiphertextThatHidesNothingIsRefused(t *testing.T) {
	secret, public := make([]byte, SecretSize), make([]byte, PublicSize)
	if err := Keygen(seeded(1), nil, secret, public); err != nil {
		t.Fatal(err)
	}
	batch := make([]byte, CipherSize)
	if err := Wrap([][]byte{public}, make([]byte, PieceSize), seeded(2), batch); err != nil {
		t.Fatal(err)
	}
	if err := Read(secret, batch, make([]byte, PieceSize)); err != nil {
		t.Fatal(err)
	}
	bad := append(make([]byte, ElementSize), batch[ElementSize:]...)
	if err := Read(secret, bad, make([]byte, PieceSize)); fault.KindOf(err) != fault.Message {
		t.Errorf("it was read: %v", err)
	}
	if err := Strip(secret, [][]byte{public}, 1, bad, seeded(3), make([]byte, CipherSize)); fault.KindOf(err) != fault.Message {
		t.Errorf("it was stripped: %v", err)
	}
}

// Minus an encoded element is another name of the same one.
func TestNegativeElementsAreRefused(t *testing.T) {
	at := edwards25519.NewIdentityPoint()
	for i := range 20 {
		at.Add(at, edwards25519.NewGeneratorPoint())
		var found [ElementSize]byte
		encode(found[:], at)
		if _, err := decode(found[:]); err != nil {
			t.Fatal(err)
		}
		s, err := new(field.Element).SetBytes(found[:])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(new(field.Element).Negate(s).Bytes()); fault.KindOf(err) != fault.Message {
			t.Errorf("minus the encoding of %d G was read", i+1)
		}
	}
}

// What Lizard carries beyond a piece is zero, or it comes from somewhere else.
func TestAPieceIsFollowedByNothing(t *testing.T) {
	for place := range lizardSize {
		var data [lizardSize]byte
		data[place] = 1
		var point ristretto.Point
		point.SetLizard(&data)
		element, err := decode(point.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := extract(make([]byte, PieceSize), element); (err == nil) != (place < PieceSize) {
			t.Errorf("byte %d: %v", place, err)
		}
	}
	if extract(make([]byte, PieceSize), edwards25519.NewGeneratorPoint()) == nil {
		t.Error("an element that nobody embedded holds a value")
	}
}
