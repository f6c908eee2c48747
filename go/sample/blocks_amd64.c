/* AES-256 in counter mode, sixteen blocks at a time. Constant time, as the processor's instructions are. */
#include "blocks.h"

#include <immintrin.h>
#include <string.h>

#define TARGET "aes,sse4.1,avx512f,avx512bw,vaes"
#define LANE static inline __attribute__((always_inline, target(TARGET)))

LANE __m128i spread_key(__m128i key, __m128i assist) {
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, assist);
}

/* The fifteen round keys. */
LANE void expand(__m128i *k, const uint8_t key[32]) {
  k[0] = _mm_loadu_si128((const __m128i *)key), k[1] = _mm_loadu_si128((const __m128i *)(key + 16));
#define EVEN(i, constant) k[i] = spread_key(k[i - 2], _mm_shuffle_epi32(_mm_aeskeygenassist_si128(k[i - 1], constant), 0xff))
#define ODD(i) k[i] = spread_key(k[i - 2], _mm_shuffle_epi32(_mm_aeskeygenassist_si128(k[i - 1], 0), 0xaa))
  EVEN(2, 1), ODD(3), EVEN(4, 2), ODD(5), EVEN(6, 4), ODD(7), EVEN(8, 8), ODD(9);
  EVEN(10, 16), ODD(11), EVEN(12, 32), ODD(13), EVEN(14, 64);
}

/* Four times four blocks side by side in registers, so that none waits for another. */
#define LOTS 4
#define EACH _Pragma("GCC unroll 8") for (int j = 0; j < LOTS; j++)

__attribute__((target(TARGET))) void atoll_blocks(uint8_t *out, size_t blocks, const uint8_t key[32], uint64_t counter) {
  __m128i narrow[15];
  __m512i k[15];
  expand(narrow, key);
  for (int i = 0; i < 15; i++) k[i] = _mm512_broadcast_i32x4(narrow[i]);
  /* A block is the counter, most significant byte first, below 2^64 here. */
  const __m512i turned = _mm512_broadcast_i32x4(_mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  const __m512i four = _mm512_setr_epi64(4, 0, 4, 0, 4, 0, 4, 0);
  __m512i count = _mm512_add_epi64(_mm512_setr_epi64((long long)counter, 0, (long long)counter, 0, (long long)counter, 0,
                                                     (long long)counter, 0),
                                   _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0));
  for (; blocks > 0; blocks -= blocks < 16 ? blocks : 16, out += 256) {
    __m512i x[4];
    EACH {
      x[j] = _mm512_xor_si512(_mm512_shuffle_epi8(count, turned), k[0]);
      count = _mm512_add_epi64(count, four);
    }
#pragma GCC unroll 14
    for (int i = 1; i < 14; i++) {
      EACH x[j] = _mm512_aesenc_epi128(x[j], k[i]);
    }
    EACH x[j] = _mm512_aesenclast_epi128(x[j], k[14]);
    if (blocks >= 16) {
      EACH _mm512_storeu_si512(out + 64 * j, x[j]);
    } else {
      memcpy(out, x, 16 * blocks);
    }
  }
  /* Round keys say the key. */
  memset(narrow, 0, sizeof narrow);
  memset(k, 0, sizeof k);
  __asm__ volatile("" : : "r"(narrow), "r"(k) : "memory");
}
