/* Eight words at a time, on AVX-512 IFMA. Every function carries its target, so that the rest of the library runs on
   any x86-64. */
#ifndef ATOLL_LANES_IFMA_H
#define ATOLL_LANES_IFMA_H

#include <immintrin.h>
#include <stdint.h>

#define TARGET "avx512f,avx512bw,avx512ifma,avx512vbmi"
#define KERNEL __attribute__((target(TARGET)))
#define LANE static inline __attribute__((always_inline, target(TARGET)))

typedef __m512i words;

LANE words load(const uint64_t *p) { return _mm512_loadu_si512(p); }
LANE void store(uint64_t *p, words x) { _mm512_storeu_si512(p, x); }
LANE words spread(uint64_t x) { return _mm512_set1_epi64((long long)x); }
LANE words add(words x, words y) { return _mm512_add_epi64(x, y); }
LANE words sub(words x, words y) { return _mm512_sub_epi64(x, y); }
LANE words smaller(words x, words y) { return _mm512_min_epu64(x, y); }
/* sum plus the lower, or the upper, 52 bits of the product of the lowest 52 bits of x and y. */
LANE words add_low(words sum, words x, words y) { return _mm512_madd52lo_epu64(sum, x, y); }
LANE words add_high(words sum, words x, words y) { return _mm512_madd52hi_epu64(sum, x, y); }
LANE words zero(void) { return _mm512_setzero_si512(); }

/* Of x = x0 ... x7 and y: x0 y0 x2 y2 ... and x1 y1 x3 y3 ... */
LANE words evens(words x, words y) { return _mm512_unpacklo_epi64(x, y); }
LANE words odds(words x, words y) { return _mm512_unpackhi_epi64(x, y); }

/* The lanes of the next eight that are within the count. */
LANE __mmask8 lanes_left(int count) { return (__mmask8)(count >= 8 ? 0xff : (1 << count) - 1); }

#endif
