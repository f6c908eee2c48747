/* Four lanes on AVX2 and FMA. Every function carries its target, so that the rest of the library runs on any
   x86-64 and nothing here is called on a processor without them. */
#ifndef ATOLL_LANES_H
#define ATOLL_LANES_H

#include <immintrin.h>
#include <stdint.h>

#define KERNEL __attribute__((target("avx2,fma")))
#define LANE static inline __attribute__((always_inline, target("avx2,fma")))

typedef __m256d doubles;
typedef __m256i words;

LANE doubles d_load(const void *p) { return _mm256_loadu_pd((const double *)p); }
LANE void d_store(void *p, doubles x) { _mm256_storeu_pd((double *)p, x); }
/* The two doubles at p and the two at q. */
LANE doubles d_load_halves(const double *p, const double *q) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(q), 1);
}
LANE void d_store_halves(double *p, double *q, doubles x) {
  _mm_storeu_pd(p, _mm256_castpd256_pd128(x));
  _mm_storeu_pd(q, _mm256_extractf128_pd(x, 1));
}
LANE doubles d_set(double x) { return _mm256_set1_pd(x); }
LANE doubles d_add(doubles x, doubles y) { return _mm256_add_pd(x, y); }
LANE doubles d_sub(doubles x, doubles y) { return _mm256_sub_pd(x, y); }
LANE doubles d_mul(doubles x, doubles y) { return _mm256_mul_pd(x, y); }
/* x y + z, x y - z and z - x y, rounded once. */
LANE doubles d_fma(doubles x, doubles y, doubles z) { return _mm256_fmadd_pd(x, y, z); }
LANE doubles d_fms(doubles x, doubles y, doubles z) { return _mm256_fmsub_pd(x, y, z); }
LANE doubles d_fnma(doubles x, doubles y, doubles z) { return _mm256_fnmadd_pd(x, y, z); }
/* The nearest integer. */
LANE doubles d_round(doubles x) { return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* By the sign of x. */
LANE doubles d_if_negative(doubles x, doubles yes, doubles no) { return _mm256_blendv_pd(no, yes, x); }
/* Positive x with the sign of y. */
LANE doubles d_signed(doubles x, doubles y) { return _mm256_or_pd(x, _mm256_and_pd(y, _mm256_set1_pd(-0.0))); }

/* Of x = x0 x1 x2 x3 and y: x0 y0 x2 y2, x1 y1 x3 y3. */
LANE doubles d_evens(doubles x, doubles y) { return _mm256_unpacklo_pd(x, y); }
LANE doubles d_odds(doubles x, doubles y) { return _mm256_unpackhi_pd(x, y); }

LANE words d_bits(doubles x) { return _mm256_castpd_si256(x); }
LANE doubles w_double(words x) { return _mm256_castsi256_pd(x); }

LANE words w_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
LANE void w_store(void *p, words x) { _mm256_storeu_si256((__m256i *)p, x); }
LANE words w_set(uint64_t x) { return _mm256_set1_epi64x((long long)x); }
LANE words w_add(words x, words y) { return _mm256_add_epi64(x, y); }
LANE words w_sub(words x, words y) { return _mm256_sub_epi64(x, y); }
LANE words w_and(words x, words y) { return _mm256_and_si256(x, y); }
LANE words w_or(words x, words y) { return _mm256_or_si256(x, y); }
LANE words w_xor(words x, words y) { return _mm256_xor_si256(x, y); }
LANE words w_shift26(words x) { return _mm256_srli_epi64(x, 26); }
/* All ones where x > y, both below 2^63. */
LANE words w_greater(words x, words y) { return _mm256_cmpgt_epi64(x, y); }
LANE int w_any(words x) { return _mm256_movemask_epi8(x) != 0; }

/* Four residues to 26 bytes; three bytes beyond them are written as well. */
LANE void pack4(uint8_t *out, words x) {
  __m256i second = _mm256_unpackhi_epi64(x, x);
  __m256i low = _mm256_or_si256(x, _mm256_slli_epi64(second, 52)), high = _mm256_srli_epi64(second, 12);
  __m256i pairs = _mm256_unpacklo_epi64(low, high);
  _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(pairs));
  _mm_storeu_si128((__m128i *)(out + 13), _mm256_extracti128_si256(pairs, 1));
}

/* Four residues from 26 bytes; three bytes beyond them are read as well. */
LANE words unpack4(const uint8_t *in) {
  const __m256i apart = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, -1, 6, 7, 8, 9, 10, 11, 12, -1, /**/
                                         0, 1, 2, 3, 4, 5, 6, -1, 6, 7, 8, 9, 10, 11, 12, -1);
  const __m256i shift = _mm256_setr_epi64x(0, 4, 0, 4);
  __m256i pairs = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)in)),
                                          _mm_loadu_si128((const __m128i *)(in + 13)), 1);
  return _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(pairs, apart), shift),
                          _mm256_set1_epi64x((1ll << 52) - 1));
}

#endif
