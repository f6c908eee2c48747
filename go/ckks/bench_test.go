package ckks

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/polynomial"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/bignum"
)

// BenchmarkBesideLattigo shows our operations beside Lattigo's own at the same
// parameters and level, in processor time: what a comparison with the paper's
// protocol rests on must not be slower than the library that it stands on.
func BenchmarkBesideLattigo(b *testing.B) {
	g := groupOf(b, paperSet)
	k, level := g.keys, g.m.top
	eval := lattigosOwn(b, g.m)
	values := numbers(1, g.m.Slots(), 1)
	x, y := g.encrypt(b, values), g.encrypt(b, values)
	clear := must[*Encoded](b)(Encode(g.m, values, level))
	plain := lattigo.NewPlaintext(g.m.params, level)
	check(b, eval.Encode(values, plain))
	series := Chebyshev{Low: -1, High: 1, Coefficients: numbers(2, 32, 1)}
	theirs := bignum.NewPolynomial(bignum.Chebyshev, series.Coefficients, [2]float64{-1, 1})
	rescaled := func(ct *rlwe.Ciphertext, err error) error {
		if err != nil {
			return err
		}
		return eval.Rescale(ct, ct)
	}
	failed := func(_ any, err error) error { return err }
	// Whatever comes first finds a small heap and pays for every page that it grows by: a sum, which does
	// little else than allocate, took three times as long there as after everything else.
	for range 500 {
		check(b, failed(eval.AddNew(x.ct, y.ct)))
	}
	for _, row := range []struct {
		name         string
		ours, theirs func() error
	}{
		{"add", func() error { return failed(k.Sum([]*Ciphertext{x, y})) },
			func() error { return failed(eval.AddNew(x.ct, y.ct)) }},
		{"pt*ct", func() error { return failed(k.Inner([]Pair{{x, Factor{Clear: clear}}}, true)) },
			func() error { return rescaled(eval.MulNew(x.ct, plain)) }},
		{"ct*ct", func() error { return failed(k.Inner([]Pair{{x, Factor{Secret: y}}}, true)) },
			func() error { return rescaled(eval.MulRelinNew(x.ct, y.ct)) }},
		{"rotate", func() error { return failed(k.Rotated(x, 1)) },
			func() error { return failed(eval.RotateNew(x.ct, 1)) }},
		{"polynomial", func() error { return failed(k.Polynomial(x, series)) },
			func() error { return theirPolynomial(eval, g.m, x.ct, theirs) }},
		{"encode", func() error { return failed(Encode(g.m, values, level)) },
			func() error { return eval.Encode(values, plain) }},
	} {
		b.Run(row.name+"/ours", func(b *testing.B) { timed(b, row.ours) })
		b.Run(row.name+"/lattigo", func(b *testing.B) { timed(b, row.theirs) })
	}
}

// theirPolynomial changes the interval and evaluates, as Lattigo's documentation says.
func theirPolynomial(eval *lattigo.Evaluator, m *Machine, x *rlwe.Ciphertext, series bignum.Polynomial) error {
	scalar, constant := series.ChangeOfBasis()
	y, err := eval.MulNew(x, scalar)
	if err != nil {
		return err
	}
	if err := eval.Add(y, constant, y); err != nil {
		return err
	}
	if y.Scale.Cmp(x.Scale) != 0 {
		if err := eval.Rescale(y, y); err != nil {
			return err
		}
	}
	_, err = polynomial.NewEvaluator(m.params, eval).Evaluate(y, series, m.params.DefaultScale())
	return err
}

// lattigosOwn is an evaluator whose keys Lattigo made, for a secret that nobody shares.
func lattigosOwn(b *testing.B, m *Machine) *lattigo.Evaluator {
	generator := rlwe.NewKeyGenerator(m.params)
	secret := generator.GenSecretKeyNew()
	return lattigo.NewEvaluator(m.params, rlwe.NewMemEvaluationKeySet(
		generator.GenRelinearizationKeyNew(secret), generator.GenGaloisKeyNew(m.params.GaloisElement(1), secret)))
}

// timed reports processor time besides what the clock says.
func timed(b *testing.B, step func() error) {
	for range 20 { // pages are touched for the first time outside of the measurement
		check(b, step())
	}
	runtime.GC()
	before := processor()
	for b.Loop() {
		if err := step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processor()-before).Microseconds())/float64(b.N)/1e3, "cpu-ms/op")
}

func processor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkTogether(b *testing.B) {
	g := groupOf(b, paperSet)
	values := numbers(1, g.m.Slots(), 1)
	x := must[*Ciphertext](b)(g.keys.Lowered(g.encrypt(b, values), g.m.RefreshLevel))
	s, common, seed := g.secrets[0], label("c"), label("s")
	room := func(kind Kind, step int) []byte {
		level := x.Level()
		if kind != KindRefresh && kind != KindShare && kind != KindOpening {
			level = g.m.top
		}
		return make([]byte, must[int](b)(Size(paperSet, kind, level, step, false)))
	}
	share, shares := room(KindShare, 0), make([]byte, 8*ShareWords*g.m.Slots())
	refresh, opening := room(KindRefresh, 0), room(KindOpening, flooding)
	first, rotation, input := room(KindRelinearisation1, 0), room(KindRotation, 1), room(KindInput, 0)
	total := g.total(b, KindRefresh, x.Level(), 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, common, seed)
	})
	for _, row := range []struct {
		name string
		step func() error
	}{
		{"encrypt", func() error { _, err := g.keys.Encrypt(values, g.m.top, seed, 0); return err }},
		{"rerandomise", func() error { _, err := g.keys.Rerandomised(x, seed, 0); return err }},
		{"refresh part", func() error { return s.RefreshPart(refresh, x, common, seed) }},
		{"total", func() error { return Total(paperSet, [][]byte{refresh, refresh, refresh}, total, false) }},
		{"opening part", func() error { return s.OpeningPart(opening, x, seed, flooding, g.m.Slots()) }},
		{"share part", func() error { return s.SharePart(share, shares, x, seed) }},
		{"input part", func() error { return s.InputPart(input, shares, common, seed) }},
		{"relinearisation part", func() error { return s.KeyPart(first, KindRelinearisation1, 0, common, seed, nil) }},
		{"rotation part", func() error { return s.KeyPart(rotation, KindRotation, 1, common, seed, nil) }},
	} {
		b.Run(row.name, func(b *testing.B) { timed(b, row.step) })
	}
	parts := g.total(b, KindRefresh, x.Level(), 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, common, seed)
	})
	b.Run("refreshed", func(b *testing.B) {
		timed(b, func() error { _, err := Refreshed(x, parts, common, 3); return err })
	})
}
