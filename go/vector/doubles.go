//go:build cgo && (amd64 || arm64)

package vector

/*
#cgo CFLAGS: -O3 -std=c11 -fno-strict-aliasing
#include <stdlib.h>
#include "kernels.h"
*/
import "C" // -std=c11 implies -ffp-contract=off, which cgo does not take

import (
	"math"
	"unsafe"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// doublesBuilt: the kernels in C are part of this build.
const doublesBuilt = true

// doubles is the path on residues as doubles (AVX2 or NEON). Factors and operands are balanced doubles, in the same
// words.
type doubles struct {
	q                 uint64
	forward, backward *C.plan
}

// newDoubles: its tables live outside Go's memory, as long as the process.
func newDoubles(sub *ring.SubRing) Modulus {
	mustBeJustBelow(sub.Modulus)
	return &doubles{sub.Modulus, newPlan(sub, sub.RootsForward), newPlan(sub, sub.RootsBackward)}
}

// newPlan brings roots, which Lattigo keeps times 2^64, to the form of the kernels.
func newPlan(sub *ring.SubRing, roots []uint64) *C.plan {
	q, n := sub.Modulus, sub.N
	factor := func(x uint64) C.factor {
		value := float64(x)
		if x > q/2 {
			value = -float64(q - x)
		}
		return C.factor{C.double(value), C.double(value / float64(q))}
	}
	plain := func(root uint64) uint64 { return ring.IMForm(root, q, sub.MRedConstant) }
	scalar := asScalar(sub)
	table := allocate[C.factor](n)
	for i := range table {
		table[i] = factor(plain(roots[i]))
	}
	shrink := plain(sub.NInv)
	p := &allocate[C.plan](1)[0]
	*p = C.plan{
		q: C.double(q), inverse: C.double(1 / float64(q)), n: C.int(n),
		root: &table[0], tail: (*C.double)(unsafe.Pointer(&laneRoots(table)[0])),
		shrink: factor(shrink), last: factor(scalar.mul(shrink, plain(roots[1]))),
		p77: factor(Reduce128(1<<13, 0, q, scalar.barrett)),
		p51: factor(1 << 51 % q),
		p26: factor(1 << 26),
	}
	return p
}

// laneRoots arranges the roots of the last two levels within sixteen residues lane by lane: each lane has the one of
// its four residues on the first of these levels, and then the two on the second.
func laneRoots(roots []C.factor) []float64 {
	n := len(roots)
	out := allocate[float64](3 * n / 2)
	for sixteen := range n / 16 {
		for lane := range 4 {
			four := 4*sixteen + lane
			for which, root := range []C.factor{roots[n/4+four], roots[n/2+2*four], roots[n/2+2*four+1]} {
				place := 24*sixteen + 8*which + lane
				out[place], out[place+4] = float64(root.value), float64(root.quotient)
			}
		}
	}
	return out
}

func allocate[T any](count int) []T {
	var one T
	return unsafe.Slice((*T)(C.calloc(C.size_t(count), C.size_t(unsafe.Sizeof(one)))), count)
}

func words(x []uint64) *C.uint64_t     { return (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(x))) }
func operand(x []uint64) *C.double     { return (*C.double)(unsafe.Pointer(unsafe.SliceData(x))) }
func octets(x []byte) *C.uint8_t       { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(x))) }
func (m *doubles) Forward(p []uint64)  { C.atoll_forward(m.forward, words(p)) }
func (m *doubles) Backward(p []uint64) { C.atoll_backward(m.backward, words(p)) }
func (m *doubles) Factor(p []uint64)   { C.atoll_balance(m.forward, words(p), C.int(len(p))) }
func (m *doubles) Operand(p []uint64)  { m.Factor(p) }

func (m *doubles) ForwardOperand(p []uint64, used int) {
	C.atoll_forward_short(m.forward, words(p), C.int(used))
}

func (m *doubles) Multiply(out, x, y []uint64) {
	C.atoll_multiply(m.forward, words(out), words(x), operand(y), C.int(len(out)))
}

func (m *doubles) MultiplyAdd(sum, x, y []uint64) {
	C.atoll_multiply_add(m.forward, words(sum), words(x), operand(y), C.int(len(sum)))
}

func (m *doubles) MultiplySub(sum, x, y []uint64) {
	C.atoll_multiply_sub(m.forward, words(sum), words(x), operand(y), C.int(len(sum)))
}

func (m *doubles) Add(x, y []uint64) { C.atoll_add(m.forward, words(x), words(y), C.int(len(x))) }

func (m *doubles) Accumulate(s *Sums, x, y, b []uint64, count, left, right int) {
	C.atoll_accumulate(words(s.words[:]), operand(x), operand(y), operand(b), Tile, C.int(count), C.ptrdiff_t(left), C.ptrdiff_t(right))
	s.count += count
}

func (m *doubles) Reduce(first, second []uint64, s *Sums) {
	C.atoll_reduce(m.forward, words(first), words(second), words(s.words[:]), Tile, C.int64_t(s.count))
}

func (m *doubles) Pack(out []byte, residues []uint64) {
	C.atoll_pack(octets(out), words(residues), C.int(len(residues)))
}

func (m *doubles) Unpack(residues []uint64, data []byte) bool {
	return C.atoll_unpack(words(residues), octets(data), C.int(len(residues)), C.uint64_t(m.q)) == 0
}

func (m *doubles) UnpackAdd(residues []uint64, data []byte) bool {
	return C.atoll_unpack_add(words(residues), octets(data), C.int(len(residues)), C.uint64_t(m.q)) == 0
}

// Small implements Parted: a double, which is balanced.
func (m *doubles) Small(value int64) uint64 { return math.Float64bits(float64(value)) }

// AddParts implements Parted.
func (m *doubles) AddParts(s *PartSums, small []uint64, step int, x, y []uint64, left, inner int) {
	C.atoll_add_part(m.forward, words(s.sums), operand(s.work), operand(small), C.ptrdiff_t(step),
		operand(x), operand(y), C.ptrdiff_t(left), C.int(s.Size), C.int(s.Used), C.int(s.Part), C.int(s.Rows), C.int(inner))
	s.count += inner
}

// ReduceParts implements Parted.
func (m *doubles) ReduceParts(first, second []uint64, s *PartSums, row int) {
	C.atoll_reduce(m.forward, words(first), words(second), words(s.sums[4*s.Size*row:]), C.int(s.Size), C.int64_t(s.count))
}

// environment reads the variable as it is now; Go's own copy is from when the process started, and Python may have
// changed it since.
func environment() string {
	name := C.CString(Variable)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.getenv(name))
}
