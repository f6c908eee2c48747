// Package vector is the arithmetic of package product modulo primes just below
// 2^52: transforms, products, sums of products, packing. It has four paths, of
// which one is chosen when the library is first used; the environment variable
// ATOLL_VECTOR forces one. All give the same residues, and so the same messages.
//
//	ifma     AVX-512 IFMA: 52-bit integer multiplication, in C (integers_amd64.c)
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
// Reducing |x| < 2^53: c = round(fl(x / q)), where 1/q is rounded to 2^-105, so that c is
// within 1/2 + 2^-51 of x/q, and x - c q, one fused operation, is an integer of at most
// q/2 + 2. Exact.
//
// Halving a range: of |x| <= 2q, x less q with the sign of x is at most q in magnitude. That is one subtraction and no
// multiplication, so it serves inside a transform.
//
// Multiplying |y| <= 2q by a root |w| < q/2, of which v = w/q is known: |v| < 1/2
// is rounded to 2^-55, which moves y v by less than 1/4, as 2q < 2^53; |y v| < 2^52 is rounded to
// 1/4; c = round(y v) adds 1/2. So |c - y w/q| < 1 and r = y w - c q has |r| < q.
// It is found exactly: high = y w rounded, low = y w - high by one fused operation,
// which is a double (the error of a product always is) of at most 2^50, because
// |y w| < 2^104. Then high - c q = r - low is an integer below q + 2^50 < 2^53, so
// the fused operation that computes it is exact, and so is adding low.
//
// The forward butterfly, x + w y and x - w y, halves the range of x and multiplies y: from
// |x|, |y| <= 2q both results are below q + q again. The first one, of residues as they are, which are
// below q, leaves x alone. The backward one, x + y and w (x - y), from |x|, |y| <= q halves the range of the sum and
// multiplies the difference, both at most 2q: the results are at most q again. The last step of the forward
// transform halves the range once more, that of the backward one multiplies both, by 1/n as well: -q <= x < q, and
// adding q to what is negative gives the residue in [0, q).
//
// By the sign of a zero that would be wrong, so no zero may be negative. None is: a difference of equal numbers is
// not, a sum is only if both numbers are, and x less q with its sign, which is every other sum's first number,
// never is; nor is low, as a difference of equal numbers.
//
// Multiplying two balanced x and y has no v at hand: c = round(high / q). high is
// below 2^102, so it is off by at most 2^48, 1/q by 2^-105; their product, below 2^50, is rounded to
// 1/16: |c - x y/q| < 1/2 + 1/16 + 1/8 + 1/16 plus less than a hundredth, so
// |r| < 0.76 q, and adding a residue stays below 2q.
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
// # Why 52-bit integers are exact
//
// The instructions of IFMA take the lowest 52 bits of x and y and add the lower, lo(x y), or the
// upper 52 bits, hi(x y), of their product to 64 bits. q is so close to 2^52 that 2q has 53 bits,
// so the lazy ranges which others use do not fit. Let e = 2^52 - q < 2^22.
//
// Multiplying 0 <= y < 2^52 by a factor w, of which W = w 2^52 mod q and V = W / q mod 2^52 are
// known: t = lo(y V), and t q = y W mod 2^52, so that the lower halves of y W and t q cancel, and
// r = hi(y W) - hi(t q) = (y W - t q) / 2^52 is y w modulo q (Montgomery). Both are below q: |r| < q.
//
// "Loose" values are integers in [-q, 2^52 + q). For one of them c = floor(x / 2^52), an arithmetic
// shift, is -1, 0 or 1, and x - c q lies in [0, 2^52): for c = -1, x >= -q; for c = 1, 2^52 <= x < 2^52 + q.
// As x = c 2^52 + l, that is l + c e: lo(c e) added to x has these as its lowest 52 bits, also for
// c = -1, where lo(c e) = 2^52 - e. A multiplication needs no more than the lowest 52 bits; x on the other
// side of the butterfly has the rest cut off. So from loose x and y, x - c q + r and x - c q - r are
// loose again: above -q and below 2^52 + q. Coefficients below 2^51 in magnitude are loose too.
//
// The backward butterfly keeps residues: x + y < 2q less q, unless that is negative, which as an
// unsigned number is larger (a minimum); x - y and r plus q, if they are negative, likewise.
//
// Sums add up lo and hi of products of numbers below 2^52: 2^12 of each fit 64 bits. In the end each
// sum is cut at 52 bits, a 2^52 being worth e, which gives at most 2^52 + 2^34 < 2q, less q if it can be;
// the upper one times 2^52, which is r as above, plus the lower one is loose.
//
// The compiler must not fuse what is written apart: -ffp-contract=off, which GCC
// implies with -std=c11 (kernels_body.h insists). The rounding mode is the default
// one, and nothing is small enough to underflow.
// No kernel branches on a value or uses one as an address.
package vector
