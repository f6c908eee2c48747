package ifma

import "golang.org/x/sys/cpu"

// Has: the processor multiplies eight pairs of 52-bit integers at once.
var Has = cpu.X86.HasAVX512F && cpu.X86.HasAVX512IFMA && cpu.X86.HasAVX512VL

//go:noescape
func Forward(x, y *uint64, count int, w, q, inverse uint64)

//go:noescape
func Backward(x, y *uint64, count int, w, q, inverse uint64)

//go:noescape
func Scale(x *uint64, count int, w, q, inverse uint64)

//go:noescape
func Accumulate(high0, low0, high1, low1, x, y, b *uint64, count int)

//go:noescape
func ForwardTail(p *uint64, pairs int, roots *uint64, q, inverse uint64)

//go:noescape
func BackwardTail(p *uint64, pairs int, roots *uint64, q, inverse uint64)

//go:noescape
func Multiply(out, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func MultiplyAdd(sum, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func MultiplySub(sum, x, y *uint64, count int, q, inverse uint64)

//go:noescape
func Accumulate4(high0, low0, high1, low1, x, y, b *uint64, count, left, right int)
