package product

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/core/fault"
)

// Every message of a round, and every share, as they were when they were written down: a stream that two purposes share,
// a part of a domain that gets lost, another width of a mask gives other bytes.
func TestMessagesOfARoundArePinned(t *testing.T) {
	want := map[bool]string{false: "6b6d83d7f9ad9e23", true: "2b15fb0e659f27b4"}
	for _, y := range []Layout{pathLayouts[3], {Rows: 7, Inner: 1, Cols: 2, BlockRows: 7, BlockInner: 1, BlockCols: 2, Entrywise: true}} {
		round := everyMessage(t, mustGet("wide4"), y)
		digest := sha256.Sum256([]byte(strings.Join(round, "\n")))
		if found := fmt.Sprintf("%x", digest[:8]); found != want[y.Entrywise] {
			t.Errorf("entrywise %v: %s", y.Entrywise, found)
		}
	}
}

// Ten deviations of the errors of both sides, as the table of margins says.
func TestTheBoundOnNoiseIsPinned(t *testing.T) {
	var found []int
	for _, name := range []string{"wide4", "deep5", "deep8"} {
		for _, parties := range []int{2, 3, MaxParties} {
			for _, right := range []int{0, 10, 40} {
				found = append(found, mustGet(name).NoiseBits(parties, right))
			}
		}
	}
	want := []int{14, 16, 46, 14, 17, 46, 21, 21, 50, 14, 16, 46, 15, 17, 46, 21, 21, 50, 14, 16, 46, 15, 17, 46, 21, 21, 50}
	if !slices.Equal(found, want) {
		t.Errorf("%v", found)
	}
	if deviations != 10 || errorDeviation != 3.2404 {
		t.Error("the bound is of fewer deviations, or of smaller errors")
	}
}

func TestAFreedKeyIsWiped(t *testing.T) {
	k, err := NewSecret(mustGet("wide4"), label("k"))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Max(k.s) == 0 {
		t.Fatal("the key is zero")
	}
	k.Free()
	if slices.Max(k.s) != 0 {
		t.Error("a freed key is still in memory")
	}
}

// Values with smudging stay below what the words hold, or they would wrap.
func TestSmudgingLeavesRoom(t *testing.T) {
	for bits, good := range map[int]bool{125: true, 126: false} {
		x := NewMatrix(1, 1, 2)
		x.At(0, 0)[1] = 1 << (bits - 64)
		err := Smudge(NewMatrix(1, 1, 2), x, 100, label("s"), nil)
		if (err == nil) != good || err != nil && fault.KindOf(err) != fault.Range {
			t.Errorf("2^%d: %v", bits, err)
		}
	}
	x := NewMatrix(1, 1, 2)
	for width, good := range map[int]bool{0: false, 1: true, 126: true, 127: false} {
		if err := Smudge(NewMatrix(1, 1, 2), x, width, label("s"), nil); (err == nil) != good {
			t.Errorf("smudging of %d bits: %v", width, err)
		}
	}
}

// The sum of all masks, at its widest, stays below half the modulus: a bit more and it would wrap.
func TestMasksFitTheRingToTheLastBit(t *testing.T) {
	for _, name := range []string{"wide4", "deep5", "deep8"} {
		r := mustGet(name)
		for _, parties := range []int{2, 3, 4, 7} {
			spare := len(fmt.Sprintf("%b", parties))
			widest := int(r.LogQ()-1) + 1 - spare
			for mask, good := range map[int]bool{widest: true, widest + 1: false} {
				c := Clearing{parties, 20, 10, r.NoiseBits(parties, 10) + 60, mask}
				if err := c.check(r); (err == nil) != good {
					t.Errorf("%s: %d parties, masks of %d bits: %v", name, parties, mask, err)
				}
			}
		}
	}
}
