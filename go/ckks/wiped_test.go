package ckks

import (
	"slices"
	"testing"
)

// What a secret was computed in is lent to the next who asks, and lies in memory until then.
func TestWhatASecretWasComputedInIsWiped(t *testing.T) {
	m := must[*Machine](t)(MachineOf(testSet, true))
	p := m.poly()
	for _, row := range p.Coeffs {
		for i := range row {
			row[i] = 7
		}
	}
	m.wiped(p)
	for i, row := range p.Coeffs {
		if slices.Max(row) != 0 {
			t.Errorf("something of row %d is left", i)
		}
	}
}

// Below the level of a refresh the moduli do not hold a mask: what it hides would wrap, and show.
func TestPartsAreAtLevelsThatHoldTheirMasks(t *testing.T) {
	for _, kind := range []Kind{KindRefresh, KindShare} {
		for level, good := range map[int]bool{0: false, 1: false, 2: true, 9: true, 10: false} {
			if _, err := Size(testSet, kind, level, 0, true); (err == nil) != good {
				t.Errorf("a %v at level %d: %v", kind, level, err)
			}
		}
	}
}
