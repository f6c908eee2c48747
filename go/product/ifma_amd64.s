#include "textflag.h"

// Eight residues at a time. A product a*b/2^52 modulo q < 2^52 is, by Montgomery's
// method in base 2^52, hi(a*b) - hi(t*q) with t = lo(a*b)/q modulo 2^52: the low
// halves cancel. It lies in (-q, q); adding q where it is negative is an unsigned
// minimum. Z0 = factor, Z1 = q, Z2 = 1/q modulo 2^52.

// func forwardIFMA(x, y *uint64, count int, w, q, inverse uint64)
// x, y = x + w y, x - w y
TEXT ·forwardIFMA(SB), NOSPLIT, $0-48
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

// func backwardIFMA(x, y *uint64, count int, w, q, inverse uint64)
// x, y = x + y, w (x - y)
TEXT ·backwardIFMA(SB), NOSPLIT, $0-48
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

// func scaleIFMA(x *uint64, count int, w, q, inverse uint64)
// x = w x
TEXT ·scaleIFMA(SB), NOSPLIT, $0-40
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

// func accumulateIFMA(high0, low0, high1, low1, x, y, b *uint64, count int)
// low += lo(x b), high += hi(x b), both halves of 52 bits; the same for y.
TEXT ·accumulateIFMA(SB), NOSPLIT, $0-64
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
