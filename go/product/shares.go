package product

import "atoll/core/fault"

// Combine returns round(sum of coefficients[n] * matrices[n] / 2^shift): what any
// holder of shares may do alone, because it is linear up to the rounding.
func Combine(matrices []*Matrix, coefficients []int64, shift, words int) (*Matrix, error) {
	if len(matrices) == 0 || len(matrices) != len(coefficients) {
		return nil, fault.New(fault.Argument, "a combination needs as many coefficients as matrices")
	}
	if shift < 0 || shift > 512 || words < 1 || words > maxWords {
		return nil, fault.New(fault.Argument, "a shift of %d bits into %d words makes no sense", shift, words)
	}
	first := matrices[0]
	for _, matrix := range matrices {
		if matrix.Rows != first.Rows || matrix.Cols != first.Cols {
			return nil, fault.New(fault.Argument, "matrices of different sizes cannot be combined")
		}
	}
	out := NewMatrix(first.Rows, first.Cols, words)
	var sum, entry [maxWords + 2]uint64
	for e := range first.Rows * first.Cols {
		clear(sum[:])
		for n, matrix := range matrices {
			if err := resize(entry[:], matrix.Data[e*matrix.Words:(e+1)*matrix.Words]); err != nil {
				return nil, err
			}
			addSigned(sum[:], entry[:], coefficients[n])
		}
		if shift > 0 {
			roundShift(sum[:], shift)
		}
		if err := resize(out.Data[e*words:(e+1)*words], sum[:]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addSigned adds x*factor to sum; x is used up.
func addSigned(sum, x []uint64, factor int64) {
	if factor < 0 {
		negate(x)
		addScaled(sum, x, uint64(-factor))
		return
	}
	addScaled(sum, x, uint64(factor))
}

// Smudge adds to every entry an integer uniform in [-2^(width-1), 2^(width-1)).
func Smudge(x *Matrix, width int, seed, domain []byte) (*Matrix, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	if width < 1 || width > 64*x.Words-2 {
		return nil, fault.New(fault.Argument, "smudging of %d bits does not fit %d words", width, x.Words)
	}
	if err := x.Check(64*x.Words - 2); err != nil {
		return nil, err
	}
	out := NewMatrix(x.Rows, x.Cols, x.Words)
	s := newStream(seed, forSmudging, domain, 0)
	for e := range x.Rows * x.Cols {
		place := out.Data[e*x.Words : (e+1)*x.Words]
		centred(place, width, s)
		add(place, x.Data[e*x.Words:(e+1)*x.Words])
	}
	return out, nil
}
