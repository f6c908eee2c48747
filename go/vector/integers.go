package vector

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"

	"atoll/core/vector/ifma"
)

// integers is the path on AVX-512 IFMA: roots times 2^52, Montgomery's method in base 2^52. Factors are
// times 2^104, operands are residues.
type integers struct {
	*scalar
	inverse           uint64
	forward, backward []uint64
	// For the steps within sixteen residues: three vectors of roots for each.
	forwardTail, backwardTail []uint64
	shrink                    uint64 // 1/N
	lift                      uint64 // 2^104, which brings a factor to base 2^52
}

const lanes = 8

func newIntegers(sub *ring.SubRing) Modulus {
	m := &integers{scalar: asScalar(sub), inverse: 1}
	for range 6 { // Newton: each step doubles the digits that are right
		m.inverse *= 2 - m.q*m.inverse
	}
	m.inverse &= 1<<Bits - 1
	base := Reduce128(0, 1<<Bits, m.q, m.barrett)
	convert := func(root uint64) uint64 { return m.mul(ring.IMForm(root, m.q, sub.MRedConstant), base) }
	for i := range sub.RootsForward {
		m.forward = append(m.forward, convert(sub.RootsForward[i]))
		m.backward = append(m.backward, convert(sub.RootsBackward[i]))
	}
	m.forwardTail, m.backwardTail = tail(m.forward), tail(m.backward)
	m.shrink = convert(sub.NInv)
	m.lift = m.mul(base, base)
	return m
}

// tail arranges the roots of the three steps within sixteen residues lane by lane.
func tail(roots []uint64) []uint64 {
	n := len(roots)
	var out []uint64
	for pair := range n / (2 * lanes) {
		for _, half := range []int{4, 2, 1} {
			for lane := range lanes {
				out = append(out, roots[(n+2*lanes*pair)/(2*half)+lane/half])
			}
		}
	}
	return out
}

func (m *integers) Forward(p []uint64) { m.ForwardOperand(p, len(p)) }

// ForwardOperand: while the upper halves are zero, a step only copies the lower ones.
func (m *integers) ForwardOperand(p []uint64, used int) {
	n := len(p)
	groups, half := 1, n/2
	for half >= lanes && half >= used {
		groups, half = 2*groups, half/2
	}
	for copied := n / groups; copied < n; copied *= 2 {
		copy(p[copied:2*copied], p[:copied])
	}
	for ; half >= lanes; groups, half = 2*groups, half/2 {
		for i := range groups {
			x := 2 * i * half
			ifma.Forward(&p[x], &p[x+half], half, m.forward[groups+i], m.q, m.inverse)
		}
	}
	ifma.ForwardTail(&p[0], n/(2*lanes), &m.forwardTail[0], m.q, m.inverse)
}

func (m *integers) Backward(p []uint64) {
	n := len(p)
	ifma.BackwardTail(&p[0], n/(2*lanes), &m.backwardTail[0], m.q, m.inverse)
	for groups, half := n/2/lanes, lanes; half < n; groups, half = groups/2, 2*half {
		for i := range groups {
			x := 2 * i * half
			ifma.Backward(&p[x], &p[x+half], half, m.backward[groups+i], m.q, m.inverse)
		}
	}
	ifma.Scale(&p[0], n, m.shrink, m.q, m.inverse)
}

func (m *integers) Factor(p []uint64) { ifma.Scale(&p[0], len(p), m.lift, m.q, m.inverse) }

func (m *integers) Multiply(out, x, y []uint64) {
	ifma.Multiply(&out[0], &x[0], &y[0], len(out), m.q, m.inverse)
}

func (m *integers) MultiplyAdd(sum, x, y []uint64) {
	ifma.MultiplyAdd(&sum[0], &x[0], &y[0], len(sum), m.q, m.inverse)
}

func (m *integers) MultiplySub(sum, x, y []uint64) {
	ifma.MultiplySub(&sum[0], &x[0], &y[0], len(sum), m.q, m.inverse)
}

// Accumulate keeps sums of 52-bit halves in 64 bits each.
func (m *integers) Accumulate(s *Sums, x, y, b []uint64, count, left, right int) {
	high0, low0, high1, low1 := s.halves()
	j := 0
	for ; j+4 <= count; j += 4 {
		ifma.Accumulate4(&high0[0], &low0[0], &high1[0], &low1[0],
			&x[j*left], &y[j*left], &b[j*right], Tile, 8*left, 8*right)
	}
	for ; j < count; j++ {
		ifma.Accumulate(&high0[0], &low0[0], &high1[0], &low1[0], &x[j*left], &y[j*left], &b[j*right], Tile)
	}
}

// Reduce joins the halves to 128 bits first.
func (m *integers) Reduce(first, second []uint64, s *Sums) {
	high0, low0, high1, low1 := s.halves()
	for i := range Tile {
		high0[i], low0[i] = joined(high0[i], low0[i])
		high1[i], low1[i] = joined(high1[i], low1[i])
	}
	m.scalar.Reduce(first, second, s)
}

func joined(high, low uint64) (uint64, uint64) {
	sum, carry := bits.Add64(high<<Bits, low, 0)
	return high>>(64-Bits) + carry, sum
}
