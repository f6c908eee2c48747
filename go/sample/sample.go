// Package sample turns random words into the small coefficients of secrets and
// errors, in constant time: no branch, no table and no number of words drawn
// depends on a value.
package sample

import "math/bits"

// Ternary is uniform on {-1, 0, 1}: floor(3 word / 2^64) - 1 is off by 2^-62.
func Ternary(word uint64) int64 {
	high, _ := bits.Mul64(word, 3)
	return int64(high) - 1
}

// Binomial is the centred binomial of 21 pairs of coins, standard deviation 3.24:
// as hard as the rounded Gaussian of 3.19 that security tables assume.
func Binomial(word uint64) int64 {
	const coins = 1<<21 - 1
	return int64(bits.OnesCount64(word&coins)) - int64(bits.OnesCount64(word>>21&coins))
}

// Residue is a small coefficient modulo q.
func Residue(value int64, q uint64) uint64 {
	return uint64(value) + uint64(value>>63)&q
}
