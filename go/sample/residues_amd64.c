#include "residues.h"

#include <immintrin.h>

#define TARGET "avx512f,avx512vpopcntdq"
#define KERNEL __attribute__((target(TARGET)))
#define LANE static inline __attribute__((always_inline, target(TARGET)))

LANE __m512i spread(uint64_t x) { return _mm512_set1_epi64((long long)x); }

KERNEL int atoll_uppers(uint64_t *x, int count, uint64_t q) {
  __mmask8 beyond = 0;
  for (int i = 0; i < count; i += 8) {
    __m512i value = _mm512_srli_epi64(_mm512_loadu_si512(x + i), 12);
    beyond |= _mm512_cmpge_epu64_mask(value, spread(q));
    _mm512_storeu_si512(x + i, value);
  }
  return beyond != 0;
}

/* Small numbers modulo each modulus: the negative ones and q, or the others. */
LANE void stored(uint64_t *x, int count, __m512i value, const uint64_t *moduli, int limbs) {
  __m512i sign = _mm512_srai_epi64(value, 63);
  for (int l = 0; l < limbs; l++, x += count) {
    _mm512_storeu_si512(x, _mm512_add_epi64(value, _mm512_and_si512(sign, spread(moduli[l]))));
  }
}

KERNEL void atoll_binomials(uint64_t *x, int count, const uint64_t *moduli, int limbs) {
  const __m512i coins = spread((1 << 21) - 1);
  for (int i = 0; i < count; i += 8) {
    __m512i word = _mm512_loadu_si512(x + i);
    __m512i heads = _mm512_popcnt_epi64(_mm512_and_si512(word, coins));
    __m512i tails = _mm512_popcnt_epi64(_mm512_and_si512(_mm512_srli_epi64(word, 21), coins));
    stored(x + i, count, _mm512_sub_epi64(heads, tails), moduli, limbs);
  }
}

/* floor(3 x / 2^64) - 1, by halves of x. */
KERNEL void atoll_ternaries(uint64_t *x, int count, const uint64_t *moduli, int limbs) {
  const __m512i half = spread(0xffffffff), three = spread(3);
  for (int i = 0; i < count; i += 8) {
    __m512i word = _mm512_loadu_si512(x + i);
    __m512i low = _mm512_mul_epu32(_mm512_and_si512(word, half), three);
    __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(word, 32), three);
    __m512i sum = _mm512_add_epi64(high, _mm512_srli_epi64(low, 32));
    stored(x + i, count, _mm512_sub_epi64(_mm512_srli_epi64(sum, 32), spread(1)), moduli, limbs);
  }
}
