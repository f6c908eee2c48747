// Package vector is the arithmetic of package product modulo primes just below
// 2^52: transforms, products, sums of products, packing. It has four paths, of
// which one is chosen when the library is first used; the environment variable
// ATOLL_VECTOR forces one. All give the same residues, and so the same messages.
//
//	ifma     AVX-512 IFMA: 52-bit integer multiplication, in assembler (package ifma)
//	avx2     AVX2 and FMA: residues as doubles, in C (kernels_body.h on lanes_avx2.h)
//	neon     the same kernels on 64-bit ARM (lanes_neon.h)
//	scalar   Lattigo's transform and 128-bit integers, everywhere
//
// # Why doubles are exact
//
// All of the following holds for q in (2^52 - 2^22, 2^52), which newDoubles
// checks. A double holds every integer up to 2^53, and an operation is exact if
// its result is such an integer: rounding leaves it as it is. A fused
// multiply-add computes x y + z with one rounding at the end. So the argument
// is about bounds only. Residues are balanced: |x| <= q/2 + 2 where that is said.
//
// Reducing |x| < 2^53: c = round(x / q), where 1/q is rounded to 2^-105 and the
// product, which is below 4, to 2^-52. So c is within 1/2 + 2^-51 of x/q, and
// x - c q, one fused operation, is an integer of at most q/2 + 2. Exact.
//
// Multiplying |y| < 2^53 by a root |w| < q/2, of which v = w/q is known: |v| < 1/2
// is rounded to 2^-55, which moves y v by at most 1/4; |y v| < 2^52 is rounded to
// 1/4; c = round(y v) adds 1/2. So |c - y w/q| <= 1 and r = y w - c q has |r| <= q.
// It is found exactly: high = y w rounded, low = y w - high by one fused operation,
// which is a double (the error of a product always is) of at most 2^50, because
// |y w| < 2^104. Then high - c q = r - low is an integer below q + 2^50 < 2^53, so
// the fused operation that computes it is exact, and so is adding low.
//
// The forward butterfly, x + w y and x - w y, reduces x and multiplies y: both
// results are at most q/2 + 2 + q < 2^53 again. The backward one, x + y and
// w (x - y), from |x|, |y| <= q + 2 reduces the sum and multiplies the
// difference, both below 2q + 4 < 2^53: the results are at most q again. The
// last step reduces, so that |x| < q, and adding q to what is negative gives
// the residue in [0, q).
//
// Multiplying two balanced x and y has no v at hand: c = round(high / q). high is
// below 2^102, so it is off by at most 2^48, 1/q by 2^-105, their product (below
// 2^50) by 1/16 when rounded: |c - x y/q| < 1/2 + 1/16 + 1/8 + 1/16 plus less than
// a hundredth, so |r| < 0.76 q, and adding a residue stays below 2^53.
//
// # Sums of products
//
// For balanced u and f, |u f| < 2^102. Adding 1.5 2^103 in one fused operation
// gives a double in [2^103, 2^104), where the last bit is worth 2^51: the result is
// 1.5 2^103 + H 2^51 with |u f - H 2^51| <= 2^50. Taking it from 1.5 2^103 + 1.5 2^52
// (53 bits: a double) is exact, and adding u f to that in one fused operation gives
// 1.5 2^52 + L, L = u f - H 2^51, an integer in [2^52, 2^53): exact. Doubles of one
// binade are consecutive as 64-bit integers, so their bits are those of the constant
// plus H, or plus L. They are added up as integers modulo 2^64, and the constants
// are taken off at the end, as often as products were added. |H| < 2^51 and
// |L| <= 2^50, so that 2^12 products (MaxBlocks) fit 63 bits with a sign. The end
// cuts both sums at 26 bits, multiplies the four pieces by 2^77, 2^51, 2^26 and 1
// modulo q, and adds them up, reducing once in between.
//
// The compiler must not fuse what is written apart: -ffp-contract=off, which GCC
// implies with -std=c11 (kernels_body.h insists). The rounding mode is the default
// one, and nothing is small enough to underflow.
// No kernel branches on a value or uses one as an address.
package vector
