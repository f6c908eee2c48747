package additive

import (
	"math/big"
	"math/bits"
)

// A row of three coefficients per value carries residues modulo three numbers
// without a common factor, each in a coefficient that wraps at its own modulus.
// So a sum of ciphertexts opens to the residues of the sum, which say what the
// sum says. (Limbs with room for carries would show how many carries there were,
// and that tells about single summands: how many of them are negative.)
//
// The product of the moduli is 2^202 (less 2^-62 of it). Values of at most 2^190
// keep sums of 1024 within half of that on either side, so they are exact.
const (
	lowBits      = 74 // the first modulus is 2^74
	residueSpare = 1  // besides the sign, so many top bits of a value are free
)

type modulus struct {
	below    uint64    // the modulus p is 2^64 less this
	p        uint64    // 0 stands for the first one
	fraction [6]uint64 // floor(2^384/p)
	inverse  uint64    // of 2^74 modulo p
}

var moduli = [limbs]modulus{{}, newModulus(1), newModulus(3)}

func newModulus(below uint64) modulus {
	p := -below
	value := new(big.Int).SetUint64(p)
	whole := new(big.Int).Lsh(big.NewInt(1), 384)
	inverse := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), lowBits), value)
	return modulus{below, p, [6]uint64(wordsOf(whole.Div(whole, value), 6)), inverse.Uint64()}
}

// fold is high·2^64 + low modulo 2^64 - below, for a small below, in constant time.
func fold(high, low, below uint64) uint64 {
	h, l := bits.Mul64(high, below)
	sum, carry := bits.Add64(low, l, 0)
	sum, carry = bits.Add64(sum, (h+carry)*below, 0)
	sum += carry * below
	less, borrow := bits.Sub64(sum, -below, 0)
	return less ^ (less^sum)&-borrow
}

// residueOf is the signed value with these limbs modulo 2^64 - below.
func residueOf(low, middle, high, below uint64) uint64 {
	unsigned := fold(fold(high, middle, below), low, below)
	// A negative value is 2^192 less than its limbs say.
	negative := -(high >> 63)
	sum, carry := bits.Add64(unsigned, (-below-below*below*below)&negative, 0)
	return fold(carry, sum, below)
}

// addLow adds the value's residue modulo 2^74.
func (t *turn) addLow(low, middle uint64) {
	var carry uint64
	t[4], carry = bits.Add64(t[4], low<<(128-lowBits), 0)
	t[5] += low>>(lowBits-64) + middle<<(128-lowBits) + carry
}

// addMultiple adds y times the fraction.
func (t *turn) addMultiple(y uint64, w *[6]uint64) {
	var above, carry uint64
	for i := range t {
		h, l := bits.Mul64(y, w[i])
		var c uint64
		l, c = bits.Add64(l, above, 0)
		above = h + c
		t[i], carry = bits.Add64(t[i], l, carry)
	}
}

// blurs says whether the second and third residue get noise of their own before they
// are rounded to the wire's grid. Their fractions r/p are not on that grid, and how
// they round says something of r. Under a key that looks random a uniform mask lies
// over it; but a single holder makes its key alone, and one that is zero masks
// nothing: the sum then said how single summands had been rounded, and so confirmed
// a guess of one. (The first residue, modulo 2^74, is on the grid.)
func (ctx *context) blurs() bool { return ctx.Coefficients > 1 && ctx.MaxMembers == 0 }

// addBlur adds a signed uniform number of up to 2^20 units of a wire of 12 bytes,
// 2^-12 of a residue's step.
func (t *turn) addBlur(random uint64) {
	const low = 384 - 96 + 20 + 1 - 64 // the place of its lowest bit
	signed := int64(random)
	var carry uint64
	t[3], carry = bits.Add64(t[3], random<<(low-192), 0)
	t[4], carry = bits.Add64(t[4], uint64(signed>>(256-low)), carry)
	t[5] += uint64(signed>>63) + carry
}

// lowResidue rounds t to a residue modulo 2^74, its low 64 bits and the ten above,
// and says whether t was within a quarter of it.
func (t turn) lowResidue() (low uint64, top uint16, sound bool) {
	const up = lowBits - 64
	t.addBit(384 - lowBits - 1)
	return t[5]<<up | t[4]>>(64-up), uint16(t[5] >> (64 - up)), withinQuarter(t[4]<<up | t[3]>>(64-up))
}

// residue is the same modulo p.
func (t turn) residue(p uint64) (r uint64, sound bool) {
	var above, part uint64
	for _, word := range t {
		h, l := bits.Mul64(word, p)
		var carry uint64
		part, carry = bits.Add64(l, above, 0)
		above = h + carry
	}
	part, carry := bits.Add64(part, 1<<63, 0)
	if r = above + carry; r == p {
		r = 0
	}
	return r, withinQuarter(part)
}

// fromResidues is the signed sum with these residues, modulo 2^192 as limbs:
// S = (top, low) + 2^74·y, and y follows from its residues y1 and y2.
func fromResidues(low uint64, top uint16, first, second uint64) (l, m, h uint64) {
	y1 := moduli[1].quotient(low, top, first)
	y2 := moduli[2].quotient(low, top, second)
	p1, p2 := moduli[1].p, moduli[2].p
	// y = y1 + p1·((y2 - y1)/p1 mod p2), and p1 = 2 modulo p2.
	step := moduli[2].times(moduli[2].minus(y2, fold(0, y1, moduli[2].below)), p2/2+1)
	high, part := bits.Mul64(step, p1)
	part, carry := bits.Add64(part, y1, 0)
	high += carry
	if whole, rest := bits.Mul64(p1, p2); high > whole/2 || high == whole/2 && part > rest/2 {
		var borrow uint64
		part, borrow = bits.Sub64(part, rest, 0)
		high, _ = bits.Sub64(high, whole, borrow)
	}
	const up = lowBits - 64
	return low, uint64(top) | part<<up, part>>(64-up) | high<<up
}

// quotient is (r - (top, low))/2^74 modulo p.
func (q *modulus) quotient(low uint64, top uint16, r uint64) uint64 {
	return q.times(q.minus(r, fold(uint64(top), low, q.below)), q.inverse)
}

func (q *modulus) minus(a, b uint64) uint64 {
	difference, borrow := bits.Sub64(a, b, 0)
	return difference - q.below&-borrow
}

func (q *modulus) times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return fold(high, low, q.below)
}
