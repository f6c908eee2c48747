package product

import "golang.org/x/sys/cpu"

// hasIFMA: the processor multiplies eight pairs of 52-bit integers at once.
var hasIFMA = cpu.X86.HasAVX512F && cpu.X86.HasAVX512IFMA && cpu.X86.HasAVX512VL

//go:noescape
func forwardIFMA(x, y *uint64, count int, w, q, inverse uint64)

//go:noescape
func backwardIFMA(x, y *uint64, count int, w, q, inverse uint64)

//go:noescape
func scaleIFMA(x *uint64, count int, w, q, inverse uint64)

//go:noescape
func accumulateIFMA(high0, low0, high1, low1, x, y, b *uint64, count int)

//go:noescape
func forwardTailIFMA(p *uint64, pairs int, roots *uint64, q, inverse uint64)

//go:noescape
func backwardTailIFMA(p *uint64, pairs int, roots *uint64, q, inverse uint64)

//go:noescape
func multiplyIFMA(out, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func multiplyAddIFMA(sum, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func multiplySubIFMA(sum, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func accumulate4IFMA(high0, low0, high1, low1, x, y, b *uint64, count, left, right int)
