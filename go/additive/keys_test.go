package additive

import (
	"testing"

	"atoll/core/fault"
)

// Whoever carries a key must not be able to change what it encrypts for.
func TestAnAlteredPublicKeyIsRefused(t *testing.T) {
	_, _, _, public := keyPair(t, testSingleResidues, 1, 7)
	if _, err := OpenPublic(public, true); err != nil {
		t.Fatal(err)
	}
	h, _, err := read(public, kindPublicKey, true)
	must(t, err)
	for _, at := range []int{headerSize, headerSize + SeedBytes - 1, headerSize + SeedBytes} {
		altered := append([]byte(nil), public...)
		altered[at] ^= 1
		h.write(altered) // with a checksum that is right
		if _, err := OpenPublic(altered, true); fault.KindOf(err) != fault.Message {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}
