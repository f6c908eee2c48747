package product

import "testing"

// A masked total may be as wide as everybody's masks and a result, and not wider: what is left
// free, a party could fill with what it reads from the total.
func TestATotalIsNoWiderThanMasksAndAResult(t *testing.T) {
	for _, parties := range []int{2, 3, 4, 7, 8} {
		r := mustGet("wide4")
		y := Layout{1, 1, 1, 1, 1, 1, false}
		c := Clearing{parties, 120, 25, 95, 184}
		for _, one := range []struct {
			part, of uint64 // of a mask, beyond those of all
			fits     bool
		}{{0, 1, true}, {1, 1 << 20, false}, {1, 1, false}} {
			for _, negative := range []bool{false, true} {
				value := make([]uint64, r.Words())
				value[183/64] = 1 << (183 % 64) / one.of * (uint64(parties)*one.of + one.part)
				if value[183/64]/(1<<(183%64)/one.of) != uint64(parties)*one.of+one.part {
					t.Fatal("the test's number is too large for a word")
				}
				if negative {
					negate(value)
				}
				total := make([]byte, r.residuesSize(1))
				residues := make([]uint64, r.Limbs)
				for l := range residues {
					residues[l] = r.residue(value, l)
				}
				r.packResidues(total, residues, 1)
				err := ClearTotal(NewMatrix(1, 1, c.ShareWords()), r, y, total, c)
				if (err == nil) != one.fits {
					t.Errorf("%d parties, %d / %d of a mask beyond: %v", parties, one.part, one.of, err)
				}
			}
		}
	}
}
