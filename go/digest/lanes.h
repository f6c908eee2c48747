/* Included once for each width: LANES inputs of equal length side by side, in vectors of words of 32 bits. */

typedef uint32_t NAME(vector) __attribute__((vector_size(4 * LANES), aligned(4)));
#define V NAME(vector)

#define TURNED(x, by) ((x) >> (by) | (x) << (32 - (by)))
#define MIX(a, b, c, d, x, y)                                   \
  v[a] += v[b] + m[x], v[d] = TURNED(v[d] ^ v[a], 16);          \
  v[c] += v[d], v[b] = TURNED(v[b] ^ v[c], 12);                 \
  v[a] += v[b] + m[y], v[d] = TURNED(v[d] ^ v[a], 8);           \
  v[c] += v[d], v[b] = TURNED(v[b] ^ v[c], 7)
#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                                    \
  MIX(0, 4, 8, 12, a, b); MIX(1, 5, 9, 13, c, d); MIX(2, 6, 10, 14, e, f); MIX(3, 7, 11, 15, g, h); \
  MIX(0, 5, 10, 15, i, j); MIX(1, 6, 11, 12, k, l); MIX(2, 7, 8, 13, n, o); MIX(3, 4, 9, 14, p, q)

/* One block of every input: h is the chaining value before, and afterwards. */
FUNCTION void NAME(compress)(V h[8], const V m[16], V low, V high, uint32_t size, uint32_t flags) {
  V none = low ^ low, v[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) v[i] = h[i];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) v[8 + i] = none + start[i];
  v[12] = low, v[13] = high, v[14] = none + size, v[15] = none + flags;
  ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8);
  ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1);
  ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6);
  ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4);
  ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7);
  ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) h[i] = v[i] ^ v[i + 8];
}

/* LANES inputs at once. */
FUNCTION void NAME(group)(uint8_t *out, const uint8_t *in, size_t step, int blocks, uint64_t number, int parents) {
  V h[8], m[16], low, high;
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t own = parents ? 0 : number + (uint64_t)lane;
    low[lane] = (uint32_t)own, high[lane] = (uint32_t)(own >> 32);
  }
  for (int i = 0; i < 8; i++) h[i] = (low ^ low) + start[i];
  for (int b = 0; b < blocks; b++, in += 64) {
    NAME(turned)(m, in, step);
    uint32_t flags = parents ? PARENT : (b == 0 ? FIRST : 0) | (b == blocks - 1 ? LAST : 0);
    NAME(compress)(h, m, low, high, 64, flags);
  }
  for (int lane = 0; lane < LANES; lane++) {
    for (int i = 0; i < 8; i++) put_word(out + 32 * lane + 4 * i, h[i][lane]);
  }
}
#undef V
#undef TURNED
#undef MIX
#undef ROUND
