package additive

import (
	"encoding/binary"
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// turn is x/Q modulo 1 with 384 binary places, least significant word first.
//
// A whole value m travels as m/2^192: its three limbs are the words 3, 4 and 5,
// and noise lives in the words below. In a row of three coefficients per value a
// coefficient carries the value's residue r modulo p, as r/p: see residues.go.
type turn [6]uint64

// turnOf is x/Q for coefficient j of p: the sum of y_i/q_i modulo 1 with
// y_i = x·(Q/q_i)^-1 mod q_i. Rounding 1/q_i down costs less than 2^-320.
func (ctx *context) turnOf(p poly, j int) (t turn) {
	for i, r := range ctx.rings {
		y := ring.MRed(p[i*ctx.n+j], ctx.inverse[i], r.Modulus, r.MRedConstant)
		w := &ctx.fraction[i]
		h0, l0 := bits.Mul64(y, w[0])
		h1, l1 := bits.Mul64(y, w[1])
		h2, l2 := bits.Mul64(y, w[2])
		h3, l3 := bits.Mul64(y, w[3])
		h4, l4 := bits.Mul64(y, w[4])
		l5 := y * w[5]
		var carry uint64
		l1, carry = bits.Add64(l1, h0, 0)
		l2, carry = bits.Add64(l2, h1, carry)
		l3, carry = bits.Add64(l3, h2, carry)
		l4, carry = bits.Add64(l4, h3, carry)
		l5 += h4 + carry
		t[0], carry = bits.Add64(t[0], l0, 0)
		t[1], carry = bits.Add64(t[1], l1, carry)
		t[2], carry = bits.Add64(t[2], l2, carry)
		t[3], carry = bits.Add64(t[3], l3, carry)
		t[4], carry = bits.Add64(t[4], l4, carry)
		t[5] += l5 + carry
	}
	return t
}

// add is t + o modulo 1.
func (t *turn) add(o *turn) {
	var carry uint64
	t[0], carry = bits.Add64(t[0], o[0], 0)
	t[1], carry = bits.Add64(t[1], o[1], carry)
	t[2], carry = bits.Add64(t[2], o[2], carry)
	t[3], carry = bits.Add64(t[3], o[3], carry)
	t[4], carry = bits.Add64(t[4], o[4], carry)
	t[5] += o[5] + carry
}

// addValue adds the value with the given limbs.
func (t *turn) addValue(low, middle, high uint64) {
	var carry uint64
	t[3], carry = bits.Add64(t[3], low, 0)
	t[4], carry = bits.Add64(t[4], middle, carry)
	t[5] += high + carry
}

// addBit adds 2^bit of the 384-bit integer behind t.
func (t *turn) addBit(bit int) {
	carry := uint64(1) << (bit % 64)
	for w := bit / 64; w < len(t); w++ {
		t[w], carry = bits.Add64(t[w], carry, 0)
	}
}

// pack writes the top size bytes of t, at least eight, rounded to nearest; t is
// used up.
func (t *turn) pack(out []byte, size int) {
	t.addBit(384 - 8*size - 1)
	out = out[:size]
	// The lowest word may be cut; what is written above it is written over.
	first, at := len(t)-(size+7)/8, (size-1)%8+1
	binary.LittleEndian.PutUint64(out, t[first]>>(64-8*at))
	for _, word := range t[first+1:] {
		binary.LittleEndian.PutUint64(out[at:], word)
		at += 8
	}
}

// unpack reads what pack wrote.
func unpack(in []byte, size int) (t turn) {
	in = in[:size]
	first, at := len(t)-(size+7)/8, (size-1)%8+1
	t[first] = binary.LittleEndian.Uint64(in) << (64 - 8*at)
	for w := first + 1; w < len(t); w++ {
		t[w] = binary.LittleEndian.Uint64(in[at:])
		at += 8
	}
	return t
}

// value rounds t to the nearest value and says whether t was within a quarter
// of it: noise stays far below (see the parameter table), so what is not was
// never a sum of ciphertexts under this key.
func (t turn) value() (low, middle, high uint64, sound bool) {
	t.addBit(191)
	return t[3], t[4], t[5], withinQuarter(t[2])
}

// withinQuarter takes what stands below the unit after a half was added.
func withinQuarter(below uint64) bool {
	distance := below ^ 1<<63 // signed, as a fraction of 2^64
	return distance+1<<62 < 1<<63
}

// residuesOf is the inverse of pack for whole polynomials: round(C·Q/2^w) modulo
// every prime, for the w-bit integers C. With r = C·Q mod 2^w, centred, that is
// -(r·2^-w) mod q_i, because Q vanishes modulo q_i. The factors are in Montgomery
// form: sums of a few products are below 2^64·2^64, and one reduction takes both
// out of it.
func (ctx *context) residuesOf(packed []byte, out poly) {
	size, words := ctx.CipherBytes, len(ctx.modulus)
	var c, r [6]uint64
	for j := range ctx.n {
		t := unpack(packed[j*size:], size)
		copy(c[:words], t[6-words:])
		lowProduct(c[:words], ctx.modulus, r[:words])
		negative := -(r[words-1] >> 63)
		for i, sub := range ctx.rings {
			high, low := uint64(0), negative&ctx.unit[i]
			for w, constant := range ctx.lift[i] {
				h, l := bits.Mul64(r[w], constant)
				var carry uint64
				low, carry = bits.Add64(low, l, 0)
				high += h + carry
			}
			// high is below words·q, and what is taken off below q.
			multiple, _ := bits.Mul64(low*sub.MRedConstant, sub.Modulus)
			out[i*ctx.n+j] = ring.BRedAdd(high+sub.Modulus-multiple, sub.Modulus, sub.BRedConstant)
		}
	}
}

// lowProduct is a·b modulo 2^(64·len(out)).
func lowProduct(a, b, out []uint64) {
	clear(out)
	for i, x := range a {
		var above uint64
		for j := 0; i+j < len(out); j++ {
			high, low := bits.Mul64(x, b[j])
			var carry uint64
			low, carry = bits.Add64(low, above, 0)
			high += carry
			out[i+j], carry = bits.Add64(out[i+j], low, 0)
			above = high + carry
		}
	}
}
