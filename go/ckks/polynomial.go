package ckks

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/polynomial"
	"github.com/tuneinsight/lattigo/v6/utils/bignum"

	"atoll/core/fault"
)

// Depth is how many levels a Chebyshev series of a degree takes, the change of interval included.
func Depth(degree int) int { return 1 + bits.Len(uint(degree)) }

// Chebyshev is a function as a Chebyshev series on an interval.
type Chebyshev struct {
	Low, High    float64
	Coefficients []float64
}

// Polynomial evaluates the series in every slot, by baby steps and giant steps.
// A slot outside of the interval comes out wrong.
func (k *Keys) Polynomial(x *Ciphertext, series Chebyshev) (*Ciphertext, error) {
	if err := k.mine(x); err != nil {
		return nil, err
	}
	degree := len(series.Coefficients) - 1
	if degree < 0 || degree > 1023 || !(series.Low < series.High) {
		return nil, fault.New(fault.Argument, "a series of degree %d on [%g, %g] makes no sense", degree, series.Low, series.High)
	}
	if !k.relin {
		return nil, fault.New(fault.Argument, "a product of ciphertexts needs the relinearisation key")
	}
	end := x.Level() - Depth(degree)
	if end < 0 {
		return nil, fault.New(fault.Range, "a series of degree %d takes %d levels, and %d are left", degree, Depth(degree), x.Level())
	}
	if degree == 0 {
		return k.line(x, []float64{series.Coefficients[0], 0}, end)
	}
	y, err := k.times1(x, 2/(series.High-series.Low), x.Level()-1)
	if err != nil {
		return nil, err
	}
	if err := k.eval.Add(y.ct, -(series.Low+series.High)/(series.High-series.Low), y.ct); err != nil {
		return nil, err
	}
	if degree == 1 {
		return k.line(y, series.Coefficients, end)
	}
	target := k.m.scales[end]
	series1 := bignum.NewPolynomial(bignum.Chebyshev, series.Coefficients, [2]float64{-1, 1})
	ct, err := polynomial.NewEvaluator(k.m.params, k.eval).Evaluate(y.ct, series1, target)
	if err != nil {
		return nil, err
	}
	if ct.Level() < end {
		return nil, fault.New(fault.Internal, "a series ended at level %d, not at %d", ct.Level(), end)
	}
	if !ct.Scale.InDelta(target, 60) {
		return nil, fault.New(fault.Internal, "a series ended at another scale")
	}
	ct.Resize(1, end)
	return k.m.finished(ct), nil
}

// line is a series of degree one, of a number in [-1, 1].
func (k *Keys) line(y *Ciphertext, coefficients []float64, end int) (*Ciphertext, error) {
	out, err := k.times1(y, coefficients[1], end)
	if err != nil {
		return nil, err
	}
	if err := k.eval.Add(out.ct, coefficients[0], out.ct); err != nil {
		return nil, err
	}
	return k.m.finished(out.ct), nil
}
