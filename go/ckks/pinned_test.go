package ckks

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"testing"
)

// zeros is an encryption of zeros at a level: nothing of it depends on how a processor rounds.
func (g *group) zeros(t *testing.T, level int, seed []byte) *Ciphertext {
	t.Helper()
	return must[*Ciphertext](t)(g.keys.Encrypt(make([]float64, 4), level, seed, 0))
}

// Every part that a party sends, as it was when it was written down: a stream that two purposes share, or a part of a
// domain that gets lost, gives other bytes.
func TestPartsArePinned(t *testing.T) {
	g := groupOf(t, testSet)
	x := g.zeros(t, 4, label("x"))
	want := map[string]string{
		"public":            "1103408a7763",
		"relinearisation 1": "9a838b0ee9d5",
		"relinearisation 2": "55c49a7874f8",
		"rotation 1":        "9021b9648739",
		"rotation 2":        "864ef886284c",
		"refresh":           "948acfa0fed2",
		"opening":           "5f047a930931",
		"switching":         "27e5fc2ced08",
		"share":             "98ef62ddc1e6",
		"input":             "e1e82380de29",
		"rerandomised":      "d0dd2e4494e1",
	}
	for name, part := range g.parts(t, x, label("c"), label("s")) {
		if name == "encryption" {
			continue // of numbers, which are rounded
		}
		if runtime.GOARCH != "amd64" && (name == "opening" || name == "switching") {
			continue // a veil is transformed in floating point
		}
		digest := sha256.Sum256(part)
		if found := fmt.Sprintf("%x", digest[:6]); found != want[name] {
			t.Errorf("%q: %q,", name, found)
		}
	}
}

// One seed for two ciphertexts, two receivers or two lists of shares still gives two streams: whoever adds or subtracts
// the parts sees no masks cancel.
func TestWhatAPartIsForIsInItsStream(t *testing.T) {
	g := groupOf(t, testSet)
	m, k, common, seed := g.m, g.secrets[0], label("c"), label("s")
	x, y := g.zeros(t, 4, label("x")), g.zeros(t, 4, label("y"))
	lower := must[*Ciphertext](t)(g.keys.Lowered(x, 3))
	room := func(kind Kind, level, step int) []byte {
		return make([]byte, must[int](t)(Size(m.ID, kind, level, step, true)))
	}
	var kept [][]wide
	for _, of := range []*Ciphertext{x, y, lower} {
		shares := make([]byte, 8*ShareWords*m.Slots())
		part := room(KindShare, of.Level(), 0)
		check(t, k.SharePart(part, shares, of, seed))
		kept = append(kept, k.masksOf(t, part, KindShare, of, m.RefreshLevel))
		part = room(KindRefresh, of.Level(), 0)
		check(t, k.RefreshPart(part, of, common, seed))
		kept = append(kept, k.masksOf(t, part, KindRefresh, of, m.RefreshLevel))
	}
	seen := map[wide]int{}
	for i, masks := range kept {
		for _, mask := range masks {
			if before, found := seen[mask]; found && before != i {
				t.Fatalf("parts %d and %d have a mask in common", before, i)
			}
			seen[mask] = i
		}
	}

	// Inputs: what differs between two is more than what was put in.
	one, two := make([]byte, 8*ShareWords*m.Slots()), make([]byte, 8*ShareWords*m.Slots())
	two[0] = 1
	parts := [2][]byte{room(KindInput, m.top, 0), room(KindInput, m.top, 0)}
	check(t, k.InputPart(parts[0], one, common, seed))
	check(t, k.InputPart(parts[1], two, common, seed))
	if !wideApart(m, t, parts[0], parts[1]) {
		t.Error("two inputs under one seed have the same errors")
	}

	// Switching for two receivers: floods and errors of their own.
	receivers := []*Receiver{
		must[*Receiver](t)(NewReceiver(m, g.common, g.totals.Public)),
		must[*Receiver](t)(NewReceiver(m, label("another"), g.totals.Public)),
	}
	floods := make([][]byte, 2)
	for i, receiver := range receivers {
		floods[i] = room(KindSwitching, x.Level(), 20)
		check(t, k.SwitchingPart(floods[i], x, receiver, seed, 20, 1))
	}
	if alike(floods[0], floods[1]) {
		t.Error("parts for two receivers have numbers in common")
	}

	// A common seed for a refresh and for an encryption of shares makes two polynomials.
	if slices.Equal(m.commonOf(common, KindRefresh).Coeffs[0], m.commonOf(common, KindInput).Coeffs[0]) {
		t.Error("a refresh and an encryption of shares have a half in common")
	}
}

// wideApart: whether the difference of two inputs, as coefficients, is larger than the one that was put in.
func wideApart(m *Machine, t *testing.T, one, two []byte) bool {
	t.Helper()
	_, first, err := m.read(one, KindInput)
	check(t, err)
	_, second, err := m.read(two, KindInput)
	check(t, err)
	r := m.ring(m.top)
	difference := r.NewPoly()
	for l := range difference.Coeffs {
		q := m.Moduli[l]
		for i := range difference.Coeffs[l] {
			difference.Coeffs[l][i] = (first[l][i] + q - second[l][i]) % q
		}
	}
	r.INTT(difference, difference)
	larger := 0
	for i := range m.n {
		if value := m.lift(difference, i); value.flipped(value.sign()).bigInt().Cmp(big.NewInt(1)) > 0 {
			larger++
		}
	}
	return larger > m.n/4
}

func TestLimitsOfOpeningsAndRefreshes(t *testing.T) {
	for width, good := range map[int]bool{0: false, 1: true, 64: true, 65: false, 128: false} {
		if (checkFlooding(width) == nil) != good {
			t.Errorf("flooding of %d bits", width)
		}
	}
	g := groupOf(t, testSet)
	x := g.zeros(t, 4, label("x"))
	total := g.total(t, KindRefresh, x.Level(), 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, label("c"), label("r", i))
	})
	for parties, good := range map[int]bool{0: false, 3: true, g.m.MaxParties: true, g.m.MaxParties + 1: false} {
		if _, err := Refreshed(x, total, label("c"), parties); (err == nil) != good {
			t.Errorf("a refresh of %d parties: %v", parties, err)
		}
	}
}
