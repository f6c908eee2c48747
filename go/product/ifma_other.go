//go:build !amd64

package product

const hasIFMA = false

func forwardIFMA(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func backwardIFMA(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func scaleIFMA(_ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func accumulateIFMA(_, _, _, _, _, _, _ *uint64, _ int) { panic("no such instructions here") }
