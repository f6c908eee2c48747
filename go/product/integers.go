package product

import (
	"math/bits"

	"atoll/core/fault"
)

// Matrix holds exact integers in two's complement, Words 64-bit words each, least
// significant first, row after row.
type Matrix struct {
	Rows, Cols, Words int
	Data              []uint64
}

// NewMatrix makes a matrix of zeros.
func NewMatrix(rows, cols, words int) *Matrix {
	return &Matrix{Rows: rows, Cols: cols, Words: words, Data: make([]uint64, rows*cols*words)}
}

// View wraps words that somebody else owns.
func View(rows, cols, words int, data []uint64) (*Matrix, error) {
	if rows < 1 || cols < 1 || words < 1 || words > maxWords {
		return nil, fault.New(fault.Argument, "a matrix of %d x %d integers of %d words makes no sense", rows, cols, words)
	}
	if len(data)/words/cols != rows || len(data) != rows*cols*words {
		return nil, fault.New(fault.Argument, "%d words do not make a %d x %d matrix of %d words", len(data), rows, cols, words)
	}
	return &Matrix{rows, cols, words, data}, nil
}

// At is the integer in row i, column j.
func (m *Matrix) At(i, j int) []uint64 {
	start := (i*m.Cols + j) * m.Words
	return m.Data[start : start+m.Words : start+m.Words]
}

func (m *Matrix) checkShape(rows, cols, words int) error {
	if m.Rows != rows || m.Cols != cols || m.Words != words {
		return fault.New(fault.Argument, "the result is a %d x %d matrix of %d words", rows, cols, words)
	}
	return nil
}

// Check refuses integers of magnitude 2^limit or more. The message names no value.
func (m *Matrix) Check(limit int) error {
	for i := range m.Rows {
		for j := range m.Cols {
			if width(m.At(i, j)) > limit {
				return fault.New(fault.Range, "an entry is beyond its declared bound of %d bits; nothing was sent", limit)
			}
		}
	}
	return nil
}

// width is the least b with -2^b <= x < 2^b.
func width(x []uint64) int {
	sign := uint64(int64(x[len(x)-1]) >> 63)
	for k := len(x) - 1; k >= 0; k-- {
		if word := x[k] ^ sign; word != 0 {
			return 64*k + bits.Len64(word)
		}
	}
	return 0
}

// residue is the integer x modulo the l-th modulus.
func (r *Ring) residue(x []uint64, l int) uint64 {
	powers := r.word[l]
	var high, low uint64
	for k, word := range x {
		// 64 + 52 bits each and at most eight of them: no overflow.
		ph, pl := bits.Mul64(word, powers[k])
		var carry uint64
		low, carry = bits.Add64(low, pl, 0)
		high += ph + carry
	}
	q := r.Moduli[l]
	value := reduce128(high, low, q, r.barrett[l])
	if int64(x[len(x)-1]) < 0 {
		value = subMod(value, powers[len(x)], q)
	}
	return value
}

// powerOfTwo is 2^shift modulo the l-th modulus.
func (r *Ring) powerOfTwo(shift, l int) uint64 {
	q, constant := r.Moduli[l], r.barrett[l]
	value := reduce128(0, uint64(1)<<(shift%64), q, constant)
	for range shift / 64 {
		value = mulMod(value, r.word[l][1], q, constant)
	}
	return value
}

// lift writes into out the integer in [-Q/2, Q/2) whose residues are given.
func (r *Ring) lift(residues, digits, out []uint64) {
	for l, q := range r.Moduli {
		value := residues[l]
		for j := range l {
			// digits[j] < moduli[j], which may exceed q by less than q.
			digit := digits[j]
			if digit >= q {
				digit -= q
			}
			value = mulMod(subMod(value, digit, q), r.inverse[l][j], q, r.barrett[l])
		}
		digits[l] = value
	}
	clear(out)
	for l := range r.Moduli {
		addScaled(out, r.radix[l], digits[l])
	}
	if !less(out, r.half) {
		subtract(out, r.radix[r.Limbs])
	}
}

// addScaled adds x*factor to sum, modulo 2^(64 words).
func addScaled(sum, x []uint64, factor uint64) {
	var carry uint64
	for k := range sum {
		high, low := bits.Mul64(x[k], factor)
		low, c1 := bits.Add64(low, carry, 0)
		var c2 uint64
		sum[k], c2 = bits.Add64(sum[k], low, 0)
		carry = high + c1 + c2
	}
}

func subtract(x, y []uint64) {
	var borrow uint64
	for k := range x {
		x[k], borrow = bits.Sub64(x[k], y[k], borrow)
	}
}

func add(x, y []uint64) {
	var carry uint64
	for k := range x {
		x[k], carry = bits.Add64(x[k], y[k], carry)
	}
}

func negate(x []uint64) {
	carry := uint64(1)
	for k := range x {
		x[k], carry = bits.Add64(^x[k], 0, carry)
	}
}

// less compares non-negative integers of equal width.
func less(x, y []uint64) bool {
	for k := len(x) - 1; k >= 0; k-- {
		if x[k] != y[k] {
			return x[k] < y[k]
		}
	}
	return false
}

// shiftRight divides by 2^shift, rounding down.
func shiftRight(x []uint64, shift int) {
	sign := uint64(int64(x[len(x)-1]) >> 63)
	skip, rest := shift/64, shift%64
	for k := range x {
		low, high := sign, sign
		if k+skip < len(x) {
			low = x[k+skip]
		}
		if k+skip+1 < len(x) {
			high = x[k+skip+1]
		}
		x[k] = low>>rest | high<<1<<(63-rest)
	}
}

// roundShift divides by 2^shift (shift > 0), rounding to the nearest; halves go up.
func roundShift(x []uint64, shift int) {
	var half [maxWords + 2]uint64
	half[(shift-1)/64] = 1 << ((shift - 1) % 64)
	add(x, half[:len(x)])
	shiftRight(x, shift)
}

// resize copies x into out, which must be wide enough for its value.
func resize(out, x []uint64) error {
	if width(x) >= 64*len(out) {
		return fault.New(fault.Range, "an integer does not fit %d words", len(out))
	}
	sign := uint64(int64(x[len(x)-1]) >> 63)
	for k := range out {
		if k < len(x) {
			out[k] = x[k]
		} else {
			out[k] = sign
		}
	}
	return nil
}
