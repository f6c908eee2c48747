/* Residues of 52 bits side by side, two in thirteen bytes. */
#include "integers.h"
#include "lanes_ifma.h"

/* The bytes that the next eight, or fewer, residues fill. */
LANE __mmask64 bytes_left(int count) {
  int bytes = count >= 8 ? 52 : (52 * count + 7) / 8;
  return (__mmask64)((1ull << bytes) - 1);
}

KERNEL void atoll_integers_pack(uint8_t *out, const uint64_t *x, int count) {
  /* Thirteen bytes of every sixteen, side by side. */
  const words together = _mm512_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /**/
                                         60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, /**/
                                         44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, /**/
                                         28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, /**/
                                         12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int i = 0; i < count; i += 8, out += 52) {
    words values = _mm512_maskz_loadu_epi64(lanes_left(count - i), x + i), second = odds(values, values);
    words low = _mm512_or_si512(values, _mm512_slli_epi64(second, 52)), high = _mm512_srli_epi64(second, 12);
    _mm512_mask_storeu_epi8(out, bytes_left(count - i), _mm512_permutexvar_epi8(together, evens(low, high)));
  }
}

/* The next eight residues, or fewer; `beyond` gets the lanes of those that are not below q. */
LANE words unpacked8(const uint8_t *in, int count, words q, __mmask8 *beyond) {
  /* The seven bytes that hold each residue, at four bits' distance for every other one; byte 63 is zero. */
  const words apart = _mm512_set_epi8(63, 51, 50, 49, 48, 47, 46, 45, 63, 45, 44, 43, 42, 41, 40, 39, /**/
                                      63, 38, 37, 36, 35, 34, 33, 32, 63, 32, 31, 30, 29, 28, 27, 26, /**/
                                      63, 25, 24, 23, 22, 21, 20, 19, 63, 19, 18, 17, 16, 15, 14, 13, /**/
                                      63, 12, 11, 10, 9, 8, 7, 6, 63, 6, 5, 4, 3, 2, 1, 0);
  const words shift = _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4), mask = spread((1ull << 52) - 1);
  words data = _mm512_maskz_loadu_epi8(bytes_left(count), in);
  words value = _mm512_srlv_epi64(_mm512_permutexvar_epi8(apart, data), shift);
  /* An odd last residue has four bits to spare, which belong to its value here and must be zero. */
  __mmask8 cut = (__mmask8)(count < 8 && count % 2 == 1 ? ~(1 << (count - 1)) : 0xff);
  value = _mm512_mask_and_epi64(value, cut, value, mask);
  *beyond |= _mm512_mask_cmpge_epu64_mask(lanes_left(count), value, q);
  return value;
}

LANE int unpacked(uint64_t *x, const uint8_t *in, int count, uint64_t q, const int add_to) {
  const words all = spread(q);
  __mmask8 beyond = 0;
  for (int i = 0; i < count; i += 8, in += 52) {
    __mmask8 lanes = lanes_left(count - i);
    words value = unpacked8(in, count - i, all, &beyond);
    if (add_to) {
      words sum = add(value, _mm512_maskz_loadu_epi64(lanes, x + i));
      value = smaller(sum, sub(sum, all));
    }
    _mm512_mask_storeu_epi64(x + i, lanes, value);
  }
  return beyond != 0;
}

KERNEL int atoll_integers_unpack(uint64_t *x, const uint8_t *in, int count, uint64_t q) {
  return unpacked(x, in, count, q, 0);
}

KERNEL int atoll_integers_unpack_add(uint64_t *x, const uint8_t *in, int count, uint64_t q) {
  return unpacked(x, in, count, q, 1);
}

/* high 2^52 + low, of all lanes, as two words. */
LANE void whole(uint64_t *sum, words high, words low) {
  unsigned __int128 total = (unsigned __int128)(uint64_t)_mm512_reduce_add_epi64(high) << 52;
  total += (uint64_t)_mm512_reduce_add_epi64(low);
  sum[0] = (uint64_t)total, sum[1] = (uint64_t)(total >> 64);
}

/* Of 4096 products of 52 bits: halves of 52 bits add up to less than 2^64, all lanes together. */
KERNEL int atoll_integers_inner(uint64_t sums[4], const uint8_t *in, int count, uint64_t q, const uint64_t *y,
                                const uint64_t *z) {
  const words all = spread(q);
  words high0 = zero(), low0 = zero(), high1 = zero(), low1 = zero();
  __mmask8 beyond = 0;
  for (int i = 0; i < count; i += 8, in += 52) {
    __mmask8 lanes = lanes_left(count - i);
    words value = unpacked8(in, count - i, all, &beyond);
    words first = _mm512_maskz_loadu_epi64(lanes, y + i), second = _mm512_maskz_loadu_epi64(lanes, z + i);
    high0 = add_high(high0, value, first), low0 = add_low(low0, value, first);
    high1 = add_high(high1, value, second), low1 = add_low(low1, value, second);
  }
  whole(sums, high0, low0);
  whole(sums + 2, high1, low1);
  return beyond != 0;
}
