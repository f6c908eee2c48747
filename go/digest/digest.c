#include "digest.h"

#include <string.h>

/* The same as SHA-256 begins with. */
static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

enum { FIRST = 1, LAST = 2, PARENT = 4 };

static inline uint32_t word_at(const uint8_t *in) {
  return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static inline void put_word(uint8_t *out, uint32_t word) {
  out[0] = (uint8_t)word, out[1] = (uint8_t)(word >> 8), out[2] = (uint8_t)(word >> 16), out[3] = (uint8_t)(word >> 24);
}

/* Word i of the block of every input in m[i]. */
#define TRANSPOSE(m, in, step)                                                                         \
  for (int lane = 0; lane < LANES; lane++) {                                                           \
    for (int i = 0; i < 16; i++) (m)[i][lane] = word_at((in) + (size_t)lane * (step) + 4 * (size_t)i); \
  }

#define NAME(x) x##_1
#define LANES 1
#define FUNCTION static inline __attribute__((always_inline))
typedef uint32_t words_1 __attribute__((vector_size(4), aligned(4)));
FUNCTION void turned_1(words_1 m[16], const uint8_t *in, size_t step) { TRANSPOSE(m, in, step) }
#include "lanes.h"
#undef NAME
#undef LANES
#undef FUNCTION

#define NAME(x) x##_4
#define LANES 4
#define FUNCTION static inline __attribute__((always_inline))
typedef uint32_t words_4 __attribute__((vector_size(16), aligned(4)));
FUNCTION void turned_4(words_4 m[16], const uint8_t *in, size_t step) { TRANSPOSE(m, in, step) }
#include "lanes.h"
#undef NAME
#undef LANES
#undef FUNCTION

void atoll_digest_block(uint8_t value[32], const uint8_t block[64], uint32_t size, uint64_t number, uint32_t flags) {
  words_1 h[8], m[16], low, high;
  turned_1(m, block, 64);
  for (int i = 0; i < 8; i++) h[i][0] = word_at(value + 4 * i);
  low[0] = (uint32_t)number, high[0] = (uint32_t)(number >> 32);
  compress_1(h, m, low, high, size, flags);
  for (int i = 0; i < 8; i++) put_word(value + 4 * i, h[i][0]);
}

/* `lanes` at a time as long as there are so many. */
#define GROUPS(lanes, group)                                                                         \
  for (; count >= (lanes); count -= (lanes), number += (lanes), in += (lanes) * step, out += 32 * (lanes)) { \
    group(out, in, step, blocks, number, parents);                                                   \
  }

static void portable(uint8_t *out, const uint8_t *in, size_t step, size_t count, int blocks, uint64_t number,
                           int parents) {
  GROUPS(4, group_4)
  GROUPS(1, group_1)
}

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x) x##_8
#define LANES 8
#define FUNCTION static inline __attribute__((always_inline, target("avx2")))
typedef uint32_t words_8 __attribute__((vector_size(32), aligned(4)));
FUNCTION void turned_8(words_8 m[16], const uint8_t *in, size_t step) { TRANSPOSE(m, in, step) }
#include "lanes.h"
#undef NAME
#undef LANES
#undef FUNCTION

static __attribute__((target("avx2"))) void with_avx2(uint8_t *out, const uint8_t *in, size_t step, size_t count,
                                                       int blocks, uint64_t number, int parents) {
  GROUPS(8, group_8)
  portable(out, in, step, count, blocks, number, parents);
}

#define NAME(x) x##_16
#define LANES 16
#define FUNCTION static inline __attribute__((always_inline, target("avx512f")))
typedef uint32_t words_16 __attribute__((vector_size(64), aligned(4)));
/* Sixteen blocks are a square of words: turned over within quarters of a register, then quarters as wholes. */
FUNCTION void turned_16(words_16 m[16], const uint8_t *in, size_t step) {
  __m512i x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) x[i] = _mm512_loadu_si512(in + (size_t)i * step);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]), y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]), x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]), x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    __m512i a = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88), b = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
    __m512i c = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88), d = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
    m[i] = (words_16)_mm512_shuffle_i32x4(a, c, 0x88), m[i + 8] = (words_16)_mm512_shuffle_i32x4(a, c, 0xdd);
    m[i + 4] = (words_16)_mm512_shuffle_i32x4(b, d, 0x88), m[i + 12] = (words_16)_mm512_shuffle_i32x4(b, d, 0xdd);
  }
}
#include "lanes.h"

static __attribute__((target("avx512f"))) void with_avx512(uint8_t *out, const uint8_t *in, size_t step, size_t count,
                                                            int blocks, uint64_t number, int parents) {
  GROUPS(16, group_16)
  with_avx2(out, in, step, count, blocks, number, parents);
}
#endif

void atoll_digest_many(uint8_t *out, const uint8_t *in, size_t step, size_t count, int blocks, int parents, int width) {
#if defined(__x86_64__)
  if (width == 16) with_avx512(out, in, step, count, blocks, 0, parents);
  else if (width == 8) with_avx2(out, in, step, count, blocks, 0, parents);
  else
#endif
    portable(out, in, step, count, blocks, 0, parents);
  (void)width;
}
