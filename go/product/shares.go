package product

import "atoll/core/fault"

// Combine writes round(sum of coefficients[n] * matrices[n] / 2^shift): what any
// holder of shares may do alone, because it is linear up to the rounding.
func Combine(out *Matrix, matrices []*Matrix, coefficients []int64, shift int) error {
	if len(matrices) == 0 || len(matrices) != len(coefficients) {
		return fault.New(fault.Argument, "a combination needs as many coefficients as matrices")
	}
	if shift < 0 || shift > 512 {
		return fault.New(fault.Argument, "a shift of %d bits makes no sense", shift)
	}
	first := matrices[0]
	for _, matrix := range matrices {
		if matrix.Rows != first.Rows || matrix.Cols != first.Cols {
			return fault.New(fault.Argument, "matrices of different sizes cannot be combined")
		}
	}
	words := out.Words
	if err := out.checkShape(first.Rows, first.Cols, words); err != nil {
		return err
	}
	var sum, entry [maxWords + 2]uint64
	for e := range first.Rows * first.Cols {
		clear(sum[:])
		for n, matrix := range matrices {
			if err := resize(entry[:], matrix.Data[e*matrix.Words:(e+1)*matrix.Words]); err != nil {
				return err
			}
			addSigned(sum[:], entry[:], coefficients[n])
		}
		if shift > 0 {
			roundShift(sum[:], shift)
		}
		if err := resize(out.Data[e*words:(e+1)*words], sum[:]); err != nil {
			return err
		}
	}
	return nil
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
func Smudge(out, x *Matrix, width int, seed, domain []byte) error {
	if err := checkSeed(seed); err != nil {
		return err
	}
	if width < 1 || width > 64*x.Words-2 {
		return fault.New(fault.Argument, "smudging of %d bits does not fit %d words", width, x.Words)
	}
	if err := x.Check(64*x.Words - 2); err != nil {
		return err
	}
	if err := out.checkShape(x.Rows, x.Cols, x.Words); err != nil {
		return err
	}
	s := newStream(seed, forSmudging, domain, 0)
	for e := range x.Rows * x.Cols {
		place := out.Data[e*x.Words : (e+1)*x.Words]
		centred(place, width, s)
		add(place, x.Data[e*x.Words:(e+1)*x.Words])
	}
	return nil
}
