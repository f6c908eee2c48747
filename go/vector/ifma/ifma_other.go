//go:build !amd64

package ifma

// Has: never on this processor.
var Has = false

func Forward(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func Backward(_, _ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func Scale(_ *uint64, _ int, _, _, _ uint64) { panic("no such instructions here") }

func Accumulate(_, _, _, _, _, _, _ *uint64, _ int) { panic("no such instructions here") }

func ForwardTail(_ *uint64, _ int, _ *uint64, _, _ uint64) { panic("no such instructions here") }

func BackwardTail(_ *uint64, _ int, _ *uint64, _, _ uint64) { panic("no such instructions here") }

func Multiply(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func MultiplyAdd(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func MultiplySub(_, _, _ *uint64, _ int, _, _ uint64) { panic("no such instructions here") }

func Accumulate4(_, _, _, _, _, _, _ *uint64, _, _, _ int) { panic("no such instructions here") }
