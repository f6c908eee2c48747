//go:build !amd64

package product

var hasIFMA = false

func forwardIFMA(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func backwardIFMA(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func scaleIFMA(_ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func accumulateIFMA(_, _, _, _, _, _, _ *uint64, _ int) { panic("no such instructions here") }

func forwardTailIFMA(_ *uint64, _ int, _ *uint64, _, _ uint64) { panic("no such instructions here") }

func backwardTailIFMA(_ *uint64, _ int, _ *uint64, _, _ uint64) { panic("no such instructions here") }

func multiplyIFMA(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func multiplyAddIFMA(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func multiplySubIFMA(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func accumulate4IFMA(_, _, _, _, _, _, _ *uint64, _, _, _ int) { panic("no such instructions here") }
