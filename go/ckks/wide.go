package ckks

import (
	"math"
	"math/big"
	"math/bits"
)

// wide is a signed integer of 128 bits: masks and masked values are below 2^118.
type wide struct{ high, low uint64 }

func wideInt(x int64) wide { return wide{high: uint64(x >> 63), low: uint64(x)} }

func (x wide) add(y wide) wide {
	low, carry := bits.Add64(x.low, y.low, 0)
	high, _ := bits.Add64(x.high, y.high, carry)
	return wide{high, low}
}

func (x wide) negated() wide {
	low, borrow := bits.Sub64(0, x.low, 0)
	high, _ := bits.Sub64(0, x.high, borrow)
	return wide{high, low}
}

// sign is all ones for a negative integer, else zero.
func (x wide) sign() uint64 { return uint64(int64(x.high) >> 63) }

// flipped is x or, where sign is all ones, -x.
func (x wide) flipped(sign uint64) wide {
	low, carry := bits.Add64(x.low^sign, sign&1, 0)
	high, _ := bits.Add64(x.high^sign, 0, carry)
	return wide{high, low}
}

// bits is the length of the magnitude.
func (x wide) bits() int {
	y := x.flipped(x.sign())
	if y.high > 0 {
		return 64 + bits.Len64(y.high)
	}
	return bits.Len64(y.low)
}

func (x wide) float() float64 {
	sign := x.sign()
	y := x.flipped(sign)
	value := math.Ldexp(float64(y.high), 64) + float64(y.low)
	if sign != 0 {
		return -value
	}
	return value
}

func (x wide) bigInt() *big.Int {
	value := new(big.Int).SetInt64(int64(x.high))
	return value.Lsh(value, 64).Add(value, new(big.Int).SetUint64(x.low))
}

// residue is x modulo q, for a magnitude below 2^127; in constant time but for the division.
func (x wide) residue(q uint64) uint64 {
	sign := x.sign()
	y := x.flipped(sign)
	rest := bits.Rem64(y.high%q, y.low, q)
	return rest&^sign | (q-rest)%q&sign
}

// ratioBits is how many bits of a ratio's distance from one are kept.
const ratioBits = 144

// ratio is a quotient of two scales, 1 + delta/2^ratioBits; both are close to each other.
type ratio struct {
	delta wide // its magnitude
	sign  uint64
}

func newRatio(to, from *big.Float) ratio {
	const precision = 256
	quotient := new(big.Float).SetPrec(precision).Quo(to, from)
	quotient.Sub(quotient, big.NewFloat(1))
	quotient.SetMantExp(quotient, ratioBits)
	whole, _ := quotient.Int(nil)
	r := ratio{}
	if whole.Sign() < 0 {
		r.sign = ^uint64(0)
		whole.Neg(whole)
	}
	r.delta.low = new(big.Int).And(whole, new(big.Int).SetUint64(^uint64(0))).Uint64()
	r.delta.high = new(big.Int).Rsh(whole, 64).Uint64()
	return r
}

// of is x times the ratio, rounded.
func (r ratio) of(x wide) wide {
	sign := x.sign()
	y := x.flipped(sign)
	// The product's words 1, 2 and 3 of four; word 0 is below the rounding.
	carry0, _ := bits.Mul64(y.low, r.delta.low)
	high1, low1 := bits.Mul64(y.low, r.delta.high)
	high2, low2 := bits.Mul64(y.high, r.delta.low)
	high3, low3 := bits.Mul64(y.high, r.delta.high)
	word1, carry := bits.Add64(carry0, low1, 0)
	word2, carry := bits.Add64(high1, low3, carry)
	word3 := high3 + carry
	word1, carry = bits.Add64(word1, low2, 0)
	word2, carry = bits.Add64(word2, high2, carry)
	word3 += carry
	_ = word1
	const shift = ratioBits - 128
	word2, carry = bits.Add64(word2, 1<<(shift-1), 0)
	word3 += carry
	product := wide{word3 >> shift, word2>>shift | word3<<(64-shift)}
	return x.add(product.flipped(sign ^ r.sign))
}
