package sample

import (
	"math"
	"testing"
)

func TestTernaryTakesThirdsOfAllWords(t *testing.T) {
	third := uint64(math.MaxUint64 / 3)
	for word, expected := range map[uint64]int64{
		0: -1, third: -1, third + 1: 0, 2 * third: 0, 2*third + 1: 1, math.MaxUint64: 1,
	} {
		if found := Ternary(word); found != expected {
			t.Errorf("%x gives %d, not %d", word, found, expected)
		}
	}
}

func TestBinomialCountsCoins(t *testing.T) {
	for word, expected := range map[uint64]int64{
		0: 0, 1<<21 - 1: 21, (1<<21 - 1) << 21: -21, 1<<42 - 1: 0, 0b111 | 1<<21: 2, 1 << 42: 0,
	} {
		if found := Binomial(word); found != expected {
			t.Errorf("%x gives %d, not %d", word, found, expected)
		}
	}
}

func TestResiduesOfSmallCoefficients(t *testing.T) {
	const q = 0xffffffff58001
	for value, expected := range map[int64]uint64{-21: q - 21, -1: q - 1, 0: 0, 1: 1, 21: 21} {
		if found := Residue(value, q); found != expected {
			t.Errorf("%d is %d", value, found)
		}
	}
}

// Every processor makes the same residues of the same words.
func TestResiduesOfManyWordsAreThoseOfEachOne(t *testing.T) {
	moduli := []uint64{0xffffffff58001, 0xffffffff00001, 0xfffffffe88001}
	third := uint64(math.MaxUint64 / 3)
	edges := []uint64{0, 1, 1<<21 - 1, (1<<21 - 1) << 21, 1<<42 - 1, third, third + 1, 2 * third, 2*third + 1,
		math.MaxUint64, 1 << 42, math.MaxUint32, math.MaxUint64 - math.MaxUint32, (moduli[0] - 1) << 12}
	for _, count := range []int{8, 16, 4096, 13} { // the last one is not for vectors
		words := make([]uint64, count)
		NewStream("test", make([]byte, 32), "words", nil, count).Fill(words)
		copy(words, edges)
		for name, form := range map[string]struct {
			many func(poly, moduli []uint64)
			one  func(uint64) int64
		}{"ternary": {Ternaries, Ternary}, "binomial": {Binomials, Binomial}} {
			poly := make([]uint64, count*len(moduli))
			copy(poly, words)
			form.many(poly, moduli)
			for i, word := range words {
				for l, q := range moduli {
					if poly[l*count+i] != Residue(form.one(word), q) {
						t.Fatalf("%s: word %d of %d, modulus %d", name, i, count, l)
					}
				}
			}
		}
		for _, q := range []uint64{moduli[0], 1 << 52} {
			found, below := append([]uint64(nil), words...), true
			all := Uppers(found, q)
			for i, word := range words {
				below = below && word>>12 < q
				if found[i] != word>>12 {
					t.Fatalf("upper bits of word %d", i)
				}
			}
			if all != below {
				t.Fatalf("whether all are below %d is not seen", q)
			}
		}
	}
}
