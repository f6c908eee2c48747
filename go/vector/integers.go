//go:build cgo && amd64

package vector

/*
#include "integers.h"
*/
import "C"

import (
	"github.com/tuneinsight/lattigo/v6/ring"
	"golang.org/x/sys/cpu"
)

// integersHere: this processor multiplies eight pairs of 52-bit integers at once. VBMI, which came together with
// IFMA, moves bytes when residues are packed.
var integersHere = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512IFMA && cpu.X86.HasAVX512VBMI

// integers is the path on AVX-512 IFMA: Montgomery's method in base 2^52. Factors are times 2^52, operands are
// below 2^52.
type integers struct {
	q                 uint64
	forward, backward *C.integers_plan
}

// newIntegers: its tables live outside Go's memory, as long as the process.
func newIntegers(sub *ring.SubRing) Modulus {
	mustBeJustBelow(sub.Modulus)
	return &integers{sub.Modulus, newIntegersPlan(sub, sub.RootsForward), newIntegersPlan(sub, sub.RootsBackward)}
}

// newIntegersPlan brings roots, which Lattigo keeps times 2^64, to the form of the kernels.
func newIntegersPlan(sub *ring.SubRing, roots []uint64) *C.integers_plan {
	const mask = 1<<Bits - 1
	q, n, scalar := sub.Modulus, sub.N, asScalar(sub)
	inverse := uint64(1)
	for range 6 { // Newton: each step doubles the digits that are right
		inverse *= 2 - q*inverse
	}
	base := uint64(1<<Bits) % q
	multiplier := func(x uint64) C.multiplier {
		value := scalar.mul(x, base)
		return C.multiplier{C.uint64_t(value), C.uint64_t(value * inverse & mask)}
	}
	plain := func(root uint64) uint64 { return ring.IMForm(root, q, sub.MRedConstant) }
	table := allocate[C.multiplier](n)
	for i := range table {
		table[i] = multiplier(plain(roots[i]))
	}
	shrink := plain(sub.NInv)
	p := &allocate[C.integers_plan](1)[0]
	*p = C.integers_plan{
		q: C.uint64_t(q), short_of: C.uint64_t(1<<Bits - q), inverse: C.uint64_t(inverse & mask), n: C.int(n),
		root: &table[0], tail: &laneMultipliers(table)[0],
		shrink: multiplier(shrink), last: multiplier(scalar.mul(shrink, plain(roots[1]))), base: multiplier(base),
	}
	return p
}

// laneMultipliers arranges the roots of the last three levels within sixteen residues lane by lane.
func laneMultipliers(roots []C.multiplier) []C.uint64_t {
	n := len(roots)
	out := allocate[C.uint64_t](3 * n)
	for sixteen := range n / 16 {
		for level := range 3 {
			for lane := range 8 {
				root := roots[(n/16+sixteen)<<(level+1)+lane>>(2-level)]
				place := 48*sixteen + 16*level + lane
				out[place], out[place+8] = root.value, root.quotient
			}
		}
	}
	return out
}

func (m *integers) Forward(p []uint64)  { C.atoll_integers_forward(m.forward, words(p)) }
func (m *integers) Backward(p []uint64) { C.atoll_integers_backward(m.backward, words(p)) }
func (m *integers) Factor(p []uint64)   { C.atoll_integers_factor(m.forward, words(p), C.int(len(p))) }
func (m *integers) Operand([]uint64)    {}

func (m *integers) ForwardOperand(p []uint64, used int) {
	C.atoll_integers_forward_short(m.forward, words(p), C.int(used))
}

func (m *integers) Multiply(out, x, y []uint64) {
	C.atoll_integers_multiply(m.forward, words(out), words(x), words(y), C.int(len(out)))
}

func (m *integers) MultiplyAdd(sum, x, y []uint64) {
	C.atoll_integers_multiply_add(m.forward, words(sum), words(x), words(y), C.int(len(sum)))
}

func (m *integers) MultiplySub(sum, x, y []uint64) {
	C.atoll_integers_multiply_sub(m.forward, words(sum), words(x), words(y), C.int(len(sum)))
}

func (m *integers) Add(x, y []uint64) {
	C.atoll_integers_add(m.forward, words(x), words(y), C.int(len(x)))
}

func (m *integers) Accumulate(s *Sums, x, y, b []uint64, count, left, right int) {
	C.atoll_integers_accumulate(words(s.words[:]), words(x), words(y), words(b), Tile, C.int(count), C.ptrdiff_t(left), C.ptrdiff_t(right))
}

func (m *integers) Reduce(first, second []uint64, s *Sums) {
	C.atoll_integers_reduce(m.forward, words(first), words(second), words(s.words[:]), Tile)
}

func (m *integers) Pack(out []byte, residues []uint64) {
	C.atoll_integers_pack(octets(out), words(residues), C.int(len(residues)))
}

func (m *integers) Unpack(residues []uint64, data []byte) bool {
	return C.atoll_integers_unpack(words(residues), octets(data), C.int(len(residues)), C.uint64_t(m.q)) == 0
}

func (m *integers) UnpackAdd(residues []uint64, data []byte) bool {
	return C.atoll_integers_unpack_add(words(residues), octets(data), C.int(len(residues)), C.uint64_t(m.q)) == 0
}

// PackedInner implements Packed.
func (m *integers) PackedInner(sums *[4]uint64, data []byte, count int, y, z []uint64) bool {
	y, z = y[:count], z[:count]
	return C.atoll_integers_inner(words(sums[:]), octets(data), C.int(count), C.uint64_t(m.q), words(y), words(z)) == 0
}

// Small implements Parted: the integer as it is.
func (m *integers) Small(value int64) uint64 { return uint64(value) }

// AddParts implements Parted.
func (m *integers) AddParts(s *PartSums, small []uint64, step int, x, y []uint64, left, inner int) {
	C.atoll_integers_add_part(m.forward, words(s.sums), words(s.work), words(small), C.ptrdiff_t(step),
		words(x), words(y), C.ptrdiff_t(left), C.int(s.Size), C.int(s.Used), C.int(s.Part), C.int(s.Rows), C.int(inner))
}

// ReduceParts implements Parted.
func (m *integers) ReduceParts(first, second []uint64, s *PartSums, row int) {
	C.atoll_integers_reduce(m.forward, words(first), words(second), words(s.sums[4*s.Size*row:]), C.int(s.Size))
}
