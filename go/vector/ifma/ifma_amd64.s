#include "textflag.h"

// Eight residues at a time. A product a*b/2^52 modulo q < 2^52 is, by Montgomery's
// method in base 2^52, hi(a*b) - hi(t*q) with t = lo(a*b)/q modulo 2^52: the low
// halves cancel. It lies in (-q, q); adding q where it is negative is an unsigned
// minimum. Z0 = factor, Z1 = q, Z2 = 1/q modulo 2^52.

// func Forward(x, y *uint64, count int, w, q, inverse uint64)
// x, y = x + w y, x - w y
TEXT ·Forward(SB), NOSPLIT, $0-48
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ count+16(FP), CX
	VPBROADCASTQ w+24(FP), Z0
	VPBROADCASTQ q+32(FP), Z1
	VPBROADCASTQ inverse+40(FP), Z2

forward:
	VMOVDQU64 (SI), Z4
	VMOVDQU64 (DI), Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPMADD52LUQ Z0, Z5, Z6
	VPMADD52HUQ Z0, Z5, Z7
	VPMADD52LUQ Z2, Z6, Z8
	VPMADD52HUQ Z1, Z8, Z9
	VPSUBQ Z9, Z7, Z7
	VPADDQ Z1, Z7, Z8
	VPMINUQ Z8, Z7, Z7
	VPADDQ Z7, Z4, Z8
	VPSUBQ Z1, Z8, Z9
	VPMINUQ Z9, Z8, Z8
	VMOVDQU64 Z8, (SI)
	VPSUBQ Z7, Z4, Z8
	VPADDQ Z1, Z8, Z9
	VPMINUQ Z9, Z8, Z8
	VMOVDQU64 Z8, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ forward
	VZEROUPPER
	RET

// func Backward(x, y *uint64, count int, w, q, inverse uint64)
// x, y = x + y, w (x - y)
TEXT ·Backward(SB), NOSPLIT, $0-48
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ count+16(FP), CX
	VPBROADCASTQ w+24(FP), Z0
	VPBROADCASTQ q+32(FP), Z1
	VPBROADCASTQ inverse+40(FP), Z2

backward:
	VMOVDQU64 (SI), Z4
	VMOVDQU64 (DI), Z5
	VPADDQ Z5, Z4, Z8
	VPSUBQ Z1, Z8, Z9
	VPMINUQ Z9, Z8, Z8
	VMOVDQU64 Z8, (SI)
	VPSUBQ Z5, Z4, Z5
	VPADDQ Z1, Z5, Z9
	VPMINUQ Z9, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPMADD52LUQ Z0, Z5, Z6
	VPMADD52HUQ Z0, Z5, Z7
	VPMADD52LUQ Z2, Z6, Z8
	VPMADD52HUQ Z1, Z8, Z9
	VPSUBQ Z9, Z7, Z7
	VPADDQ Z1, Z7, Z8
	VPMINUQ Z8, Z7, Z7
	VMOVDQU64 Z7, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ backward
	VZEROUPPER
	RET

// func Scale(x *uint64, count int, w, q, inverse uint64)
// x = w x
TEXT ·Scale(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ count+8(FP), CX
	VPBROADCASTQ w+16(FP), Z0
	VPBROADCASTQ q+24(FP), Z1
	VPBROADCASTQ inverse+32(FP), Z2

scale:
	VMOVDQU64 (SI), Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPMADD52LUQ Z0, Z5, Z6
	VPMADD52HUQ Z0, Z5, Z7
	VPMADD52LUQ Z2, Z6, Z8
	VPMADD52HUQ Z1, Z8, Z9
	VPSUBQ Z9, Z7, Z7
	VPADDQ Z1, Z7, Z8
	VPMINUQ Z8, Z7, Z7
	VMOVDQU64 Z7, (SI)
	ADDQ $64, SI
	SUBQ $8, CX
	JNZ scale
	VZEROUPPER
	RET

// func Accumulate(high0, low0, high1, low1, x, y, b *uint64, count int)
// low += lo(x b), high += hi(x b), both halves of 52 bits; the same for y.
TEXT ·Accumulate(SB), NOSPLIT, $0-64
	MOVQ high0+0(FP), R8
	MOVQ low0+8(FP), R9
	MOVQ high1+16(FP), R10
	MOVQ low1+24(FP), R11
	MOVQ x+32(FP), SI
	MOVQ y+40(FP), DI
	MOVQ b+48(FP), DX
	MOVQ count+56(FP), CX

accumulate:
	VMOVDQU64 (DX), Z0
	VMOVDQU64 (SI), Z1
	VMOVDQU64 (DI), Z2
	VMOVDQU64 (R8), Z3
	VMOVDQU64 (R9), Z4
	VMOVDQU64 (R10), Z5
	VMOVDQU64 (R11), Z6
	VPMADD52HUQ Z0, Z1, Z3
	VPMADD52LUQ Z0, Z1, Z4
	VPMADD52HUQ Z0, Z2, Z5
	VPMADD52LUQ Z0, Z2, Z6
	VMOVDQU64 Z3, (R8)
	VMOVDQU64 Z4, (R9)
	VMOVDQU64 Z5, (R10)
	VMOVDQU64 Z6, (R11)
	ADDQ $64, DX
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, R10
	ADDQ $64, R11
	SUBQ $8, CX
	JNZ accumulate
	VZEROUPPER
	RET

// Lanes of two vectors, 0 to 7 of the first and 8 to 15 of the second.
DATA halves_low<>+0(SB)/8, $0
DATA halves_low<>+8(SB)/8, $1
DATA halves_low<>+16(SB)/8, $2
DATA halves_low<>+24(SB)/8, $3
DATA halves_low<>+32(SB)/8, $8
DATA halves_low<>+40(SB)/8, $9
DATA halves_low<>+48(SB)/8, $10
DATA halves_low<>+56(SB)/8, $11
GLOBL halves_low<>(SB), RODATA|NOPTR, $64
DATA halves_high<>+0(SB)/8, $4
DATA halves_high<>+8(SB)/8, $5
DATA halves_high<>+16(SB)/8, $6
DATA halves_high<>+24(SB)/8, $7
DATA halves_high<>+32(SB)/8, $12
DATA halves_high<>+40(SB)/8, $13
DATA halves_high<>+48(SB)/8, $14
DATA halves_high<>+56(SB)/8, $15
GLOBL halves_high<>(SB), RODATA|NOPTR, $64
DATA quarters_low<>+0(SB)/8, $0
DATA quarters_low<>+8(SB)/8, $1
DATA quarters_low<>+16(SB)/8, $8
DATA quarters_low<>+24(SB)/8, $9
DATA quarters_low<>+32(SB)/8, $4
DATA quarters_low<>+40(SB)/8, $5
DATA quarters_low<>+48(SB)/8, $12
DATA quarters_low<>+56(SB)/8, $13
GLOBL quarters_low<>(SB), RODATA|NOPTR, $64
DATA quarters_high<>+0(SB)/8, $2
DATA quarters_high<>+8(SB)/8, $3
DATA quarters_high<>+16(SB)/8, $10
DATA quarters_high<>+24(SB)/8, $11
DATA quarters_high<>+32(SB)/8, $6
DATA quarters_high<>+40(SB)/8, $7
DATA quarters_high<>+48(SB)/8, $14
DATA quarters_high<>+56(SB)/8, $15
GLOBL quarters_high<>(SB), RODATA|NOPTR, $64
DATA eighths_low<>+0(SB)/8, $0
DATA eighths_low<>+8(SB)/8, $8
DATA eighths_low<>+16(SB)/8, $2
DATA eighths_low<>+24(SB)/8, $10
DATA eighths_low<>+32(SB)/8, $4
DATA eighths_low<>+40(SB)/8, $12
DATA eighths_low<>+48(SB)/8, $6
DATA eighths_low<>+56(SB)/8, $14
GLOBL eighths_low<>(SB), RODATA|NOPTR, $64
DATA eighths_high<>+0(SB)/8, $1
DATA eighths_high<>+8(SB)/8, $9
DATA eighths_high<>+16(SB)/8, $3
DATA eighths_high<>+24(SB)/8, $11
DATA eighths_high<>+32(SB)/8, $5
DATA eighths_high<>+40(SB)/8, $13
DATA eighths_high<>+48(SB)/8, $7
DATA eighths_high<>+56(SB)/8, $15
GLOBL eighths_high<>(SB), RODATA|NOPTR, $64
DATA woven_low<>+0(SB)/8, $0
DATA woven_low<>+8(SB)/8, $8
DATA woven_low<>+16(SB)/8, $1
DATA woven_low<>+24(SB)/8, $9
DATA woven_low<>+32(SB)/8, $2
DATA woven_low<>+40(SB)/8, $10
DATA woven_low<>+48(SB)/8, $3
DATA woven_low<>+56(SB)/8, $11
GLOBL woven_low<>(SB), RODATA|NOPTR, $64
DATA woven_high<>+0(SB)/8, $4
DATA woven_high<>+8(SB)/8, $12
DATA woven_high<>+16(SB)/8, $5
DATA woven_high<>+24(SB)/8, $13
DATA woven_high<>+32(SB)/8, $6
DATA woven_high<>+40(SB)/8, $14
DATA woven_high<>+48(SB)/8, $7
DATA woven_high<>+56(SB)/8, $15
GLOBL woven_high<>(SB), RODATA|NOPTR, $64
DATA even<>+0(SB)/8, $0
DATA even<>+8(SB)/8, $2
DATA even<>+16(SB)/8, $4
DATA even<>+24(SB)/8, $6
DATA even<>+32(SB)/8, $8
DATA even<>+40(SB)/8, $10
DATA even<>+48(SB)/8, $12
DATA even<>+56(SB)/8, $14
GLOBL even<>(SB), RODATA|NOPTR, $64
DATA odd<>+0(SB)/8, $1
DATA odd<>+8(SB)/8, $3
DATA odd<>+16(SB)/8, $5
DATA odd<>+24(SB)/8, $7
DATA odd<>+32(SB)/8, $9
DATA odd<>+40(SB)/8, $11
DATA odd<>+48(SB)/8, $13
DATA odd<>+56(SB)/8, $15
GLOBL odd<>(SB), RODATA|NOPTR, $64

// PICK: out = lanes of (a, b) that the index vector names
#define PICK(index, a, b, out) \
	VMOVDQA64 index, out; \
	VPERMI2Q b, a, out

// TIMES: v = v w / 2^52 modulo q (Z1), with Z2 = 1/q; uses Z10 to Z12
#define TIMES(w, v) \
	VPXORQ Z10, Z10, Z10; \
	VPXORQ Z11, Z11, Z11; \
	VPXORQ Z12, Z12, Z12; \
	VPMADD52LUQ w, v, Z10; \
	VPMADD52HUQ w, v, Z11; \
	VPMADD52LUQ Z2, Z10, Z12; \
	VPXORQ Z10, Z10, Z10; \
	VPMADD52HUQ Z1, Z12, Z10; \
	VPSUBQ Z10, Z11, v; \
	VPADDQ Z1, v, Z10; \
	VPMINUQ Z10, v, v

// SUM: out = a + b; DIFFERENCE: out = a - b; both modulo q, using Z10
#define SUM(a, b, out) \
	VPADDQ b, a, out; \
	VPSUBQ Z1, out, Z10; \
	VPMINUQ Z10, out, out
#define DIFFERENCE(a, b, out) \
	VPSUBQ b, a, out; \
	VPADDQ Z1, out, Z10; \
	VPMINUQ Z10, out, out

// func ForwardTail(p *uint64, pairs int, roots *uint64, q, inverse uint64)
// The last three steps, on sixteen residues at a time; three vectors of roots each.
TEXT ·ForwardTail(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ pairs+8(FP), CX
	MOVQ roots+16(FP), DX
	VPBROADCASTQ q+24(FP), Z1
	VPBROADCASTQ inverse+32(FP), Z2
	VMOVDQU64 halves_low<>(SB), Z16
	VMOVDQU64 halves_high<>(SB), Z17
	VMOVDQU64 quarters_low<>(SB), Z18
	VMOVDQU64 quarters_high<>(SB), Z19
	VMOVDQU64 eighths_low<>(SB), Z20
	VMOVDQU64 eighths_high<>(SB), Z21
	VMOVDQU64 woven_low<>(SB), Z22
	VMOVDQU64 woven_high<>(SB), Z23

forward_tail:
	VMOVDQU64 (SI), Z3
	VMOVDQU64 64(SI), Z4
	VMOVDQU64 (DX), Z13
	VMOVDQU64 64(DX), Z14
	VMOVDQU64 128(DX), Z15
	PICK(Z16, Z3, Z4, Z5)
	PICK(Z17, Z3, Z4, Z6)
	TIMES(Z13, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	PICK(Z18, Z3, Z4, Z5)
	PICK(Z19, Z3, Z4, Z6)
	TIMES(Z14, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	PICK(Z20, Z3, Z4, Z5)
	PICK(Z21, Z3, Z4, Z6)
	TIMES(Z15, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	PICK(Z22, Z3, Z4, Z5)
	PICK(Z23, Z3, Z4, Z6)
	VMOVDQU64 Z5, (SI)
	VMOVDQU64 Z6, 64(SI)
	ADDQ $128, SI
	ADDQ $192, DX
	DECQ CX
	JNZ forward_tail
	VZEROUPPER
	RET

// func BackwardTail(p *uint64, pairs int, roots *uint64, q, inverse uint64)
// The first three steps back.
TEXT ·BackwardTail(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ pairs+8(FP), CX
	MOVQ roots+16(FP), DX
	VPBROADCASTQ q+24(FP), Z1
	VPBROADCASTQ inverse+32(FP), Z2
	VMOVDQU64 halves_low<>(SB), Z16
	VMOVDQU64 halves_high<>(SB), Z17
	VMOVDQU64 quarters_low<>(SB), Z18
	VMOVDQU64 quarters_high<>(SB), Z19
	VMOVDQU64 eighths_low<>(SB), Z20
	VMOVDQU64 eighths_high<>(SB), Z21
	VMOVDQU64 even<>(SB), Z22
	VMOVDQU64 odd<>(SB), Z23

backward_tail:
	VMOVDQU64 (SI), Z3
	VMOVDQU64 64(SI), Z4
	VMOVDQU64 (DX), Z13
	VMOVDQU64 64(DX), Z14
	VMOVDQU64 128(DX), Z15
	PICK(Z22, Z3, Z4, Z5)
	PICK(Z23, Z3, Z4, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	TIMES(Z15, Z4)
	PICK(Z20, Z3, Z4, Z5)
	PICK(Z21, Z3, Z4, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	TIMES(Z14, Z4)
	PICK(Z18, Z3, Z4, Z5)
	PICK(Z19, Z3, Z4, Z6)
	SUM(Z5, Z6, Z3)
	DIFFERENCE(Z5, Z6, Z4)
	TIMES(Z13, Z4)
	PICK(Z16, Z3, Z4, Z5)
	PICK(Z17, Z3, Z4, Z6)
	VMOVDQU64 Z5, (SI)
	VMOVDQU64 Z6, 64(SI)
	ADDQ $128, SI
	ADDQ $192, DX
	DECQ CX
	JNZ backward_tail
	VZEROUPPER
	RET

// func Multiply(out, x, y *uint64, count int, q, inverse uint64)
// out = x y / 2^52
TEXT ·Multiply(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), R8
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DI
	MOVQ count+24(FP), CX
	VPBROADCASTQ q+32(FP), Z1
	VPBROADCASTQ inverse+40(FP), Z2

multiply:
	VMOVDQU64 (SI), Z3
	VMOVDQU64 (DI), Z4
	TIMES(Z4, Z3)
	VMOVDQU64 Z3, (R8)
	ADDQ $64, R8
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ multiply
	VZEROUPPER
	RET

// func MultiplyAdd(sum, x, y *uint64, count int, q, inverse uint64)
// sum = sum + x y / 2^52
TEXT ·MultiplyAdd(SB), NOSPLIT, $0-48
	MOVQ sum+0(FP), R8
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DI
	MOVQ count+24(FP), CX
	VPBROADCASTQ q+32(FP), Z1
	VPBROADCASTQ inverse+40(FP), Z2

multiply_add:
	VMOVDQU64 (SI), Z3
	VMOVDQU64 (DI), Z4
	VMOVDQU64 (R8), Z5
	TIMES(Z4, Z3)
	SUM(Z5, Z3, Z6)
	VMOVDQU64 Z6, (R8)
	ADDQ $64, R8
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ multiply_add
	VZEROUPPER
	RET

// func MultiplySub(sum, x, y *uint64, count int, q, inverse uint64)
// sum = sum - x y / 2^52
TEXT ·MultiplySub(SB), NOSPLIT, $0-48
	MOVQ sum+0(FP), R8
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DI
	MOVQ count+24(FP), CX
	VPBROADCASTQ q+32(FP), Z1
	VPBROADCASTQ inverse+40(FP), Z2

multiply_sub:
	VMOVDQU64 (SI), Z3
	VMOVDQU64 (DI), Z4
	VMOVDQU64 (R8), Z5
	TIMES(Z4, Z3)
	DIFFERENCE(Z5, Z3, Z6)
	VMOVDQU64 Z6, (R8)
	ADDQ $64, R8
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ multiply_sub
	VZEROUPPER
	RET

// func Accumulate4(high0, low0, high1, low1, x, y, b *uint64, count, left, right int)
// Accumulate for four blocks, `left` bytes apart in x and y and `right` bytes in b.
TEXT ·Accumulate4(SB), NOSPLIT, $0-80
	MOVQ high0+0(FP), R8
	MOVQ low0+8(FP), R9
	MOVQ high1+16(FP), R10
	MOVQ low1+24(FP), R11
	MOVQ x+32(FP), SI
	MOVQ y+40(FP), DI
	MOVQ b+48(FP), DX
	MOVQ count+56(FP), CX
	MOVQ left+64(FP), AX
	MOVQ right+72(FP), BX
	LEAQ (AX)(AX*2), R12
	LEAQ (BX)(BX*2), R13

accumulate4:
	VMOVDQU64 (R8), Z3
	VMOVDQU64 (R9), Z4
	VMOVDQU64 (R10), Z5
	VMOVDQU64 (R11), Z6
	VMOVDQU64 (DX), Z0
	VMOVDQU64 (DX)(BX*1), Z1
	VMOVDQU64 (DX)(BX*2), Z2
	VMOVDQU64 (DX)(R13*1), Z7
	VMOVDQU64 (SI), Z8
	VMOVDQU64 (SI)(AX*1), Z9
	VMOVDQU64 (SI)(AX*2), Z10
	VMOVDQU64 (SI)(R12*1), Z11
	VPMADD52HUQ Z0, Z8, Z3
	VPMADD52LUQ Z0, Z8, Z4
	VPMADD52HUQ Z1, Z9, Z3
	VPMADD52LUQ Z1, Z9, Z4
	VPMADD52HUQ Z2, Z10, Z3
	VPMADD52LUQ Z2, Z10, Z4
	VPMADD52HUQ Z7, Z11, Z3
	VPMADD52LUQ Z7, Z11, Z4
	VMOVDQU64 (DI), Z8
	VMOVDQU64 (DI)(AX*1), Z9
	VMOVDQU64 (DI)(AX*2), Z10
	VMOVDQU64 (DI)(R12*1), Z11
	VPMADD52HUQ Z0, Z8, Z5
	VPMADD52LUQ Z0, Z8, Z6
	VPMADD52HUQ Z1, Z9, Z5
	VPMADD52LUQ Z1, Z9, Z6
	VPMADD52HUQ Z2, Z10, Z5
	VPMADD52LUQ Z2, Z10, Z6
	VPMADD52HUQ Z7, Z11, Z5
	VPMADD52LUQ Z7, Z11, Z6
	VMOVDQU64 Z3, (R8)
	VMOVDQU64 Z4, (R9)
	VMOVDQU64 Z5, (R10)
	VMOVDQU64 Z6, (R11)
	ADDQ $64, DX
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, R10
	ADDQ $64, R11
	SUBQ $8, CX
	JNZ accumulate4
	VZEROUPPER
	RET
