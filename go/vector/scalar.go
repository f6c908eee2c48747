package vector

import (
	"encoding/binary"
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// Reduce128 is (high 2^64 + low) modulo q < 2^52, by Barrett's method with
// constant = floor(2^128 / q) as (high, low) words.
func Reduce128(high, low, q uint64, constant [2]uint64) uint64 {
	// Bits 128 to 191 of (high, low) * constant are the quotient, at most two short.
	carried, _ := bits.Mul64(low, constant[1])
	midHigh1, midLow1 := bits.Mul64(low, constant[0])
	midHigh2, midLow2 := bits.Mul64(high, constant[1])
	sum, carry1 := bits.Add64(midLow1, midLow2, 0)
	_, carry2 := bits.Add64(sum, carried, 0)
	quotient := high*constant[0] + midHigh1 + midHigh2 + carry1 + carry2
	rest := low - quotient*q
	if rest >= q {
		rest -= q
	}
	if rest >= q {
		rest -= q
	}
	return rest
}

// MulMod is x y modulo q.
func MulMod(x, y, q uint64, constant [2]uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return Reduce128(high, low, q, constant)
}

// AddMod is x + y modulo q.
func AddMod(x, y, q uint64) uint64 {
	sum := x + y
	if sum >= q {
		sum -= q
	}
	return sum
}

// SubMod is x - y modulo q.
func SubMod(x, y, q uint64) uint64 {
	if x >= y {
		return x - y
	}
	return x + q - y
}

// scalar is Lattigo's transform and integers of 128 bits. Factors and operands are residues.
type scalar struct {
	sub     *ring.SubRing
	q       uint64
	barrett [2]uint64
}

func newScalar(sub *ring.SubRing) Modulus { return asScalar(sub) }

func asScalar(sub *ring.SubRing) *scalar {
	return &scalar{sub, sub.Modulus, [2]uint64{sub.BRedConstant[0], sub.BRedConstant[1]}}
}

func (m *scalar) Forward(p []uint64)  { m.sub.NTT(p, p) }
func (m *scalar) Backward(p []uint64) { m.sub.INTT(p, p) }
func (m *scalar) Factor([]uint64)     {}
func (m *scalar) Operand([]uint64)    {}

func (m *scalar) ForwardOperand(p []uint64, used int) {
	clear(p[used:])
	m.sub.NTT(p, p)
}

func (m *scalar) mul(x, y uint64) uint64 { return MulMod(x, y, m.q, m.barrett) }

func (m *scalar) Multiply(out, x, y []uint64) {
	for i := range out {
		out[i] = m.mul(x[i], y[i])
	}
}

func (m *scalar) MultiplyAdd(sum, x, y []uint64) {
	for i := range sum {
		sum[i] = AddMod(sum[i], m.mul(x[i], y[i]), m.q)
	}
}

func (m *scalar) MultiplySub(sum, x, y []uint64) {
	for i := range sum {
		sum[i] = SubMod(sum[i], m.mul(x[i], y[i]), m.q)
	}
}

func (m *scalar) Add(x, y []uint64) {
	for i := range x {
		x[i] = AddMod(x[i], y[i], m.q)
	}
}

// Accumulate keeps sums of products, 104 bits each, in 128 bits.
func (m *scalar) Accumulate(s *Sums, x, y, b []uint64, count, left, right int) {
	high0, low0, high1, low1 := s.halves()
	j := 0
	for ; j+4 <= count; j += 4 {
		u, v, f := four(x[j*left:], left), four(y[j*left:], left), four(b[j*right:], right)
		accumulate4(high0, low0, high1, low1, &u, &v, &f)
	}
	for ; j < count; j++ {
		accumulate1(high0, low0, high1, low1, x[j*left:], y[j*left:], b[j*right:])
	}
}

// halves are the high and the low words of both sums.
func (s *Sums) halves() (high0, low0, high1, low1 []uint64) {
	return s.words[:Tile], s.words[Tile : 2*Tile], s.words[2*Tile : 3*Tile], s.words[3*Tile:]
}

func four(x []uint64, distance int) [4][]uint64 {
	return [4][]uint64{x, x[distance:], x[2*distance:], x[3*distance:]}
}

func (m *scalar) Reduce(first, second []uint64, s *Sums) {
	high0, low0, high1, low1 := s.halves()
	m.reduce(first, high0, low0)
	m.reduce(second, high1, low1)
}

func (m *scalar) reduce(out, high, low []uint64) {
	for i := range out {
		out[i] = Reduce128(high[i], low[i], m.q, m.barrett)
	}
}

// accumulate4 adds four products to each of two sums, which share one factor.
func accumulate4(high0, low0, high1, low1 []uint64, x, y, b *[4][]uint64) {
	n := len(high0)
	low0, high1, low1 = low0[:n], high1[:n], low1[:n]
	x0, x1, x2, x3 := x[0][:n], x[1][:n], x[2][:n], x[3][:n]
	y0, y1, y2, y3 := y[0][:n], y[1][:n], y[2][:n], y[3][:n]
	b0, b1, b2, b3 := b[0][:n], b[1][:n], b[2][:n], b[3][:n]
	for i := 0; i < n; i++ {
		f0, f1, f2, f3 := b0[i], b1[i], b2[i], b3[i]
		h, s := high0[i], low0[i]
		ph, pl := bits.Mul64(x0[i], f0)
		s, c := bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x1[i], f1)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x2[i], f2)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x3[i], f3)
		s, c = bits.Add64(s, pl, 0)
		high0[i], low0[i] = h+ph+c, s

		h, s = high1[i], low1[i]
		ph, pl = bits.Mul64(y0[i], f0)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y1[i], f1)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y2[i], f2)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y3[i], f3)
		s, c = bits.Add64(s, pl, 0)
		high1[i], low1[i] = h+ph+c, s
	}
}

// accumulate1 adds one product to each of two sums.
func accumulate1(high0, low0, high1, low1, x, y, b []uint64) {
	n := len(high0)
	low0, high1, low1, x, y, b = low0[:n], high1[:n], low1[:n], x[:n], y[:n], b[:n]
	for i := 0; i < n; i++ {
		ph, pl := bits.Mul64(x[i], b[i])
		s, c := bits.Add64(low0[i], pl, 0)
		high0[i], low0[i] = high0[i]+ph+c, s
		ph, pl = bits.Mul64(y[i], b[i])
		s, c = bits.Add64(low1[i], pl, 0)
		high1[i], low1[i] = high1[i]+ph+c, s
	}
}

func (m *scalar) Pack(out []byte, residues []uint64) {
	pairs := len(residues) / 2
	for p := range pairs {
		x, y := residues[2*p], residues[2*p+1]
		place := out[13*p : 13*p+13]
		binary.LittleEndian.PutUint64(place, x|y<<52)
		binary.LittleEndian.PutUint32(place[8:], uint32(y>>12))
		place[12] = byte(y >> 44)
	}
	if len(residues)%2 == 1 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], residues[len(residues)-1])
		copy(out[13*pairs:], last[:7])
	}
}

func (m *scalar) Unpack(residues []uint64, data []byte) bool {
	const mask = 1<<Bits - 1
	var beyond uint64
	pairs := len(residues) / 2
	for p := range pairs {
		place := data[13*p : 13*p+13]
		first := binary.LittleEndian.Uint64(place)
		x := first & mask
		y := first>>52 | uint64(binary.LittleEndian.Uint32(place[8:]))<<12 | uint64(place[12])<<44
		beyond |= (m.q - 1 - x) | (m.q - 1 - y)
		residues[2*p], residues[2*p+1] = x, y
	}
	if len(residues)%2 == 1 {
		var last [8]byte
		copy(last[:7], data[13*pairs:])
		x := binary.LittleEndian.Uint64(last[:])
		beyond |= m.q - 1 - x
		residues[len(residues)-1] = x
	}
	return beyond>>63 == 0
}

func (m *scalar) UnpackAdd(residues []uint64, data []byte) bool {
	var room [256]uint64 // an even number of residues fills whole bytes
	fine := true
	for from := 0; from < len(residues); from += len(room) {
		part := residues[from:min(from+len(room), len(residues))]
		term := room[:len(part)]
		fine = m.Unpack(term, data[PackedSize(from):]) && fine
		m.Add(part, term)
	}
	return fine
}
