/* Four lanes as two pairs on NEON, which every 64-bit ARM processor has. */
#ifndef ATOLL_LANES_H
#define ATOLL_LANES_H

#include <arm_neon.h>
#include <stdint.h>

#define KERNEL
#define LANE static inline __attribute__((always_inline))

typedef struct {
  float64x2_t a, b;
} doubles;
typedef struct {
  uint64x2_t a, b;
} words;

LANE doubles d_load(const void *p) { return (doubles){vld1q_f64((const double *)p), vld1q_f64((const double *)p + 2)}; }
LANE void d_store(void *p, doubles x) {
  vst1q_f64((double *)p, x.a);
  vst1q_f64((double *)p + 2, x.b);
}
/* The two doubles at p and the two at q. */
LANE doubles d_load_halves(const double *p, const double *q) { return (doubles){vld1q_f64(p), vld1q_f64(q)}; }
LANE void d_store_halves(double *p, double *q, doubles x) {
  vst1q_f64(p, x.a);
  vst1q_f64(q, x.b);
}
LANE doubles d_set(double x) { return (doubles){vdupq_n_f64(x), vdupq_n_f64(x)}; }
LANE doubles d_add(doubles x, doubles y) { return (doubles){vaddq_f64(x.a, y.a), vaddq_f64(x.b, y.b)}; }
LANE doubles d_sub(doubles x, doubles y) { return (doubles){vsubq_f64(x.a, y.a), vsubq_f64(x.b, y.b)}; }
LANE doubles d_mul(doubles x, doubles y) { return (doubles){vmulq_f64(x.a, y.a), vmulq_f64(x.b, y.b)}; }
/* x y + z, x y - z and z - x y, rounded once. */
LANE doubles d_fma(doubles x, doubles y, doubles z) {
  return (doubles){vfmaq_f64(z.a, x.a, y.a), vfmaq_f64(z.b, x.b, y.b)};
}
LANE doubles d_fms(doubles x, doubles y, doubles z) {
  return (doubles){vfmaq_f64(vnegq_f64(z.a), x.a, y.a), vfmaq_f64(vnegq_f64(z.b), x.b, y.b)};
}
LANE doubles d_fnma(doubles x, doubles y, doubles z) {
  return (doubles){vfmsq_f64(z.a, x.a, y.a), vfmsq_f64(z.b, x.b, y.b)};
}
/* The nearest integer. */
LANE doubles d_round(doubles x) { return (doubles){vrndnq_f64(x.a), vrndnq_f64(x.b)}; }

LANE float64x2_t if_negative(float64x2_t x, float64x2_t yes, float64x2_t no) {
  return vbslq_f64(vcltzq_s64(vreinterpretq_s64_f64(x)), yes, no);
}
/* By the sign of x. */
LANE doubles d_if_negative(doubles x, doubles yes, doubles no) {
  return (doubles){if_negative(x.a, yes.a, no.a), if_negative(x.b, yes.b, no.b)};
}
/* Positive x with the sign of y. */
LANE doubles d_signed(doubles x, doubles y) {
  const uint64x2_t sign = vdupq_n_u64(1ull << 63);
  return (doubles){vbslq_f64(sign, y.a, x.a), vbslq_f64(sign, y.b, x.b)};
}

/* Of x = x0 x1 x2 x3 and y: x0 y0 x2 y2, x1 y1 x3 y3. */
LANE doubles d_evens(doubles x, doubles y) { return (doubles){vzip1q_f64(x.a, y.a), vzip1q_f64(x.b, y.b)}; }
LANE doubles d_odds(doubles x, doubles y) { return (doubles){vzip2q_f64(x.a, y.a), vzip2q_f64(x.b, y.b)}; }

LANE words d_bits(doubles x) { return (words){vreinterpretq_u64_f64(x.a), vreinterpretq_u64_f64(x.b)}; }
LANE doubles w_double(words x) { return (doubles){vreinterpretq_f64_u64(x.a), vreinterpretq_f64_u64(x.b)}; }

LANE words w_load(const void *p) {
  return (words){vld1q_u64((const uint64_t *)p), vld1q_u64((const uint64_t *)p + 2)};
}
LANE void w_store(void *p, words x) {
  vst1q_u64((uint64_t *)p, x.a);
  vst1q_u64((uint64_t *)p + 2, x.b);
}
LANE words w_set(uint64_t x) { return (words){vdupq_n_u64(x), vdupq_n_u64(x)}; }
LANE words w_add(words x, words y) { return (words){vaddq_u64(x.a, y.a), vaddq_u64(x.b, y.b)}; }
LANE words w_sub(words x, words y) { return (words){vsubq_u64(x.a, y.a), vsubq_u64(x.b, y.b)}; }
LANE words w_and(words x, words y) { return (words){vandq_u64(x.a, y.a), vandq_u64(x.b, y.b)}; }
LANE words w_or(words x, words y) { return (words){vorrq_u64(x.a, y.a), vorrq_u64(x.b, y.b)}; }
LANE words w_xor(words x, words y) { return (words){veorq_u64(x.a, y.a), veorq_u64(x.b, y.b)}; }
LANE words w_shift26(words x) { return (words){vshrq_n_u64(x.a, 26), vshrq_n_u64(x.b, 26)}; }
/* All ones where x > y, both below 2^63. */
LANE words w_greater(words x, words y) { return (words){vcgtq_u64(x.a, y.a), vcgtq_u64(x.b, y.b)}; }
LANE int w_any(words x) {
  uint64x2_t either = vorrq_u64(x.a, x.b);
  return (vgetq_lane_u64(either, 0) | vgetq_lane_u64(either, 1)) != 0;
}

LANE void pack2(uint8_t *out, uint64x2_t x) {
  uint64x2_t second = vdupq_laneq_u64(x, 1);
  uint64x2_t low = vorrq_u64(x, vshlq_n_u64(second, 52)), high = vshrq_n_u64(second, 12);
  vst1q_u8(out, vreinterpretq_u8_u64(vzip1q_u64(low, high)));
}

LANE uint64x2_t unpack2(const uint8_t *in) {
  static const uint8_t places[16] = {0, 1, 2, 3, 4, 5, 6, 255, 6, 7, 8, 9, 10, 11, 12, 255};
  static const int64_t shifts[2] = {0, -4};
  uint8x16_t apart = vqtbl1q_u8(vld1q_u8(in), vld1q_u8(places));
  return vandq_u64(vshlq_u64(vreinterpretq_u64_u8(apart), vld1q_s64(shifts)), vdupq_n_u64((1ull << 52) - 1));
}

/* Four residues to 26 bytes; three bytes beyond them are written as well. */
LANE void pack4(uint8_t *out, words x) {
  pack2(out, x.a);
  pack2(out + 13, x.b);
}

/* Four residues from 26 bytes; three bytes beyond them are read as well. */
LANE words unpack4(const uint8_t *in) { return (words){unpack2(in), unpack2(in + 13)}; }

#endif
