package ckks

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slotsOf are the complex numbers that coefficients stand for.
func slotsOf(t *testing.T, m *Machine, p []wide) []complex128 {
	t.Helper()
	slots := make([]complex128, m.Slots())
	for i := range slots {
		slots[i] = complex(p[i].float(), p[i+m.Slots()].float())
	}
	check(t, m.encoder.FFT(slots, m.LogN-1))
	return slots
}

// Noise is complex, and squares of what is mostly imaginary are negative.
func TestARefreshLeavesRealNumbers(t *testing.T) {
	m := must[*Machine](t)(MachineOf(testSet, true))
	rng := rand.New(rand.NewPCG(5, 6))
	p, found := make([]wide, m.n), make([]wide, m.n)
	for i := range p {
		p[i] = wide{low: rng.Uint64() >> 20}.flipped(-(rng.Uint64() & 1))
	}
	for i := range p {
		found[i] = realPart(p, i)
	}
	before, after := slotsOf(t, m, p), slotsOf(t, m, found)
	rounding := 2 * math.Sqrt(float64(m.n)) * 8
	for i := range before {
		if math.Abs(real(after[i])-real(before[i])) > rounding || math.Abs(imag(after[i])) > rounding {
			t.Fatalf("%v in slot %d became %v", before[i], i, after[i])
		}
	}
}
