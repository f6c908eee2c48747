#include "inner.h"

#include <string.h>

typedef unsigned __int128 wide;

static inline uint64_t word_at(const uint8_t *data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

static inline void inner(uint64_t sums[4], const uint8_t *data, size_t step, size_t count, uint64_t mask,
                         const uint64_t *x, const uint64_t *y) {
  wide first = 0, second = 0;
  for (size_t j = 0; j < count; j++, data += step) {
    uint64_t word = word_at(data) & mask;
    first += (wide)word * x[j];
    second += (wide)word * y[j];
  }
  sums[0] = (uint64_t)first;
  sums[1] = (uint64_t)(first >> 64);
  sums[2] = (uint64_t)second;
  sums[3] = (uint64_t)(second >> 64);
}

void atoll_inner_words(uint64_t (*sums)[4], const uint8_t *data, size_t size, size_t count, const uint64_t *x,
                       const uint64_t *y) {
  const size_t bytes = 7;
  for (size_t at = 0; at < size; at += bytes) {
    size_t left = size - at < bytes ? size - at : bytes;
    inner(*sums++, data + at, size, count, ((uint64_t)1 << 8 * left) - 1, x, y);
  }
}

void atoll_inner(uint64_t sums[4], const uint64_t *words, size_t count, const uint64_t *x, const uint64_t *y) {
  inner(sums, (const uint8_t *)words, sizeof *words, count, ~(uint64_t)0, x, y);
}
