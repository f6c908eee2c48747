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
