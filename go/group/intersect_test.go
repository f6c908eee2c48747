package group

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/bwesterb/go-ristretto"
)

// RFC 9496, A.3: what SHA-512 of a label maps to.
func TestMapOfTheRFC(t *testing.T) {
	for label, want := range map[string]string{
		"Ristretto is traditionally a short shot of espresso coffee":      "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
		"made with the normal amount of ground coffee but extracted with": "f26e5b6f7d362d2d2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b",
		"about half the amount of water in the same amount of time":       "006ccd2a9e6867e6a2c5cea83d3302cc9de128dd2a9a57dd8ee7b9d7ffe02826",
	} {
		var point ristretto.Point
		if got := hex.EncodeToString(point.DeriveDalek([]byte(label)).Bytes()); got != want {
			t.Errorf("%q maps to %s, not %s", label, got, want)
		}
	}
}

func seeded(mark byte) []byte { return bytes.Repeat([]byte{mark}, SeedSize) }

func TestSecretsCommute(t *testing.T) {
	hashes := make([]byte, 5*HashSize)
	for i := range hashes {
		hashes[i] = byte(i)
	}
	run := func(f func(out []byte) error) []byte {
		out := make([]byte, 5*ElementSize)
		if err := f(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	a := run(func(out []byte) error { return Blind(seeded(1), hashes, out) })
	b := run(func(out []byte) error { return Blind(seeded(2), hashes, out) })
	ab := run(func(out []byte) error { return Raise(seeded(2), a, out) })
	ba := run(func(out []byte) error { return Raise(seeded(1), b, out) })
	if bytes.Equal(a, b) || bytes.Equal(a, ab) || !bytes.Equal(ab, ba) {
		t.Error("the order of the secrets matters, or they do nothing")
	}
}

func TestMalformedListsAreRefused(t *testing.T) {
	out := make([]byte, 2*ElementSize)
	element := make([]byte, ElementSize)
	if err := Blind(seeded(3), make([]byte, HashSize), element); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"the identity":  make([]byte, ElementSize),
		"no element":    bytes.Repeat([]byte{255}, ElementSize),
		"an odd number": append([]byte{element[0] | 1}, element[1:]...),
	} {
		if err := Raise(seeded(1), append(append([]byte{}, element...), bad...), out); err == nil {
			t.Errorf("%s is taken for an element", name)
		}
	}
	if Raise(seeded(1), element[:31], out[:31]) == nil || Raise(seeded(1), element, out) == nil {
		t.Error("a list of another length is taken")
	}
	if Blind(seeded(1), make([]byte, HashSize+1), out) == nil || Blind(seeded(1)[:5], nil, nil) == nil {
		t.Error("hashes or a seed of another length are taken")
	}
}
