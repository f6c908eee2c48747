/* Eight residues at a time.

   Between two steps of the forward transform values are signed integers in [-q, 2^52 + q), "loose" here; between those
   of the backward one they are residues. The bounds in the comments are those of doc.go. Nothing branches on a value
   or uses it as an address. */
#include "integers.h"

#include <string.h>

#include "lanes_ifma.h"

/* So many words, 16 kB, are transformed to the end before the next ones are touched. */
#define LEAF 2048

typedef struct {
  words q, short_of, mask, inverse;
} modulus;

typedef struct {
  words value, quotient;
} lanes_multiplier;

/* The compiler would compute a difference twice, once with each sign, where its negative is needed too. */
LANE words once(words x) {
  __asm__("" : "+v"(x));
  return x;
}

LANE modulus modulus_of(const integers_plan *t) {
  return (modulus){spread(t->q), spread(t->short_of), spread((1ull << 52) - 1), spread(t->inverse)};
}
LANE lanes_multiplier spread2(multiplier w) { return (lanes_multiplier){spread(w.value), spread(w.quotient)}; }
LANE lanes_multiplier load2(const uint64_t *p) { return (lanes_multiplier){load(p), load(p + 8)}; }

/* Below 2q to below q; (-q, q) to [0, q). */
LANE words less_q(words x, modulus m) { return smaller(x, sub(x, m.q)); }
LANE words plus_q(words x, modulus m) { return smaller(x, add(x, m.q)); }

/* The lowest 52 bits of this are those of a loose x modulo q, in [0, 2^52). */
LANE words low_bits(words x, modulus m) { return add_low(x, _mm512_srai_epi64(x, 52), m.short_of); }

/* A loose x modulo q, in [0, 2^52). */
LANE words tight(words x, modulus m) { return _mm512_and_si512(low_bits(x, m), m.mask); }

/* y w modulo q, in (-q, q); of y only the lowest 52 bits count. */
LANE words times(words y, lanes_multiplier w, modulus m) {
  words count = add_low(zero(), y, w.quotient);
  return once(sub(add_high(zero(), y, w.value), add_high(zero(), count, m.q)));
}

/* x y / 2^52 modulo q, in (-q, q), for x and y below 2^52. */
LANE words product(words x, words y, modulus m) {
  words count = add_low(zero(), add_low(zero(), x, y), m.inverse);
  return sub(add_high(zero(), x, y), add_high(zero(), count, m.q));
}

/* Forward: (x, y) to (x + w y, x - w y), loose before and afterwards. */
LANE void butterfly(words *x, words *y, lanes_multiplier w, modulus m) {
  words a = tight(*x, m), b = times(low_bits(*y, m), w, m);
  *x = add(a, b);
  *y = sub(a, b);
}

/* The same from residues. */
LANE void first_butterfly(words *x, words *y, lanes_multiplier w, modulus m) {
  words a = *x, b = times(*y, w, m);
  *x = add(a, b);
  *y = sub(a, b);
}

/* One level: two halves of `half` values each, from one place to another. */
LANE void forward2(const integers_plan *t, uint64_t *p, const uint64_t *from, int half, int group, const int fresh,
                   modulus m) {
  lanes_multiplier w = spread2(t->root[group]);
  for (int i = 0; i < half; i += 8) {
    words x = load(from + i), y = load(from + half + i);
    if (fresh) first_butterfly(&x, &y, w, m);
    else butterfly(&x, &y, w, m);
    store(p + i, x);
    store(p + half + i, y);
  }
}

/* Two levels at once: four quarters of `step` values each. */
LANE void forward4(const integers_plan *t, uint64_t *p, const uint64_t *from, int step, int group, const int fresh,
                   modulus m) {
  lanes_multiplier w = spread2(t->root[group]);
  lanes_multiplier v0 = spread2(t->root[2 * group]), v1 = spread2(t->root[2 * group + 1]);
  for (int i = 0; i < step; i += 8) {
    const uint64_t *y = from + i;
    uint64_t *z = p + i;
    words a = load(y), b = load(y + step), c = load(y + 2 * step), d = load(y + 3 * step);
    if (fresh) {
      first_butterfly(&a, &c, w, m);
      first_butterfly(&b, &d, w, m);
    } else {
      butterfly(&a, &c, w, m);
      butterfly(&b, &d, w, m);
    }
    butterfly(&a, &b, v0, m);
    butterfly(&c, &d, v1, m);
    store(z, a);
    store(z + step, b);
    store(z + 2 * step, c);
    store(z + 3 * step, d);
  }
}

/* Of x = x0 ... x7 and y: halves x0-3 y0-3 and x4-7 y4-7, pairs x01 y01 x45 y45 and x23 y23 x67 y67. */
LANE words first_halves(words x, words y) { return _mm512_shuffle_i64x2(x, y, 0x44); }
LANE words second_halves(words x, words y) { return _mm512_shuffle_i64x2(x, y, 0xee); }
LANE words first_pairs(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), y);
}
LANE words second_pairs(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), y);
}
/* x0 y0 x1 y1 ..., and back: every other one of x followed by those of y. */
LANE words zipped_first(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), y);
}
LANE words zipped_second(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), y);
}
LANE words all_evens(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), y);
}
LANE words all_odds(words x, words y) {
  return _mm512_permutex2var_epi64(x, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), y);
}

/* The last four levels, within every sixteen values, two at a time, of `lots` times sixteen at once: each operation waits
   for the one before, and the processor looks ahead only so far for one that does not. */
#define EACH for (int k = 0; k < lots; k++)

LANE void forward_tail1(uint64_t *p, const uint64_t *from, const multiplier *root, const uint64_t *tail, int count,
                        const int lots, modulus m) {
  for (int i = 0; i < count; i += 16 * lots, p += 16 * lots, from += 16 * lots, tail += 48 * lots, root += lots) {
    words x[4], y[4], first[4], second[4];
    EACH x[k] = load(from + 16 * k), y[k] = load(from + 16 * k + 8);
    EACH butterfly(&x[k], &y[k], spread2(root[k]), m); /* 0-7, 8-15 */
    EACH first[k] = first_halves(x[k], y[k]), second[k] = second_halves(x[k], y[k]);
    EACH butterfly(&first[k], &second[k], load2(tail + 48 * k), m); /* 0-3 8-11, 4-7 12-15 */
    EACH store(p + 16 * k, first[k]), store(p + 16 * k + 8, second[k]);
  }
}

/* Below 2^52 afterwards, or residues. */
LANE void forward_tail2(uint64_t *p, const uint64_t *tail, int count, const int to_residues, const int lots, modulus m) {
  for (int i = 0; i < count; i += 16 * lots, p += 16 * lots, tail += 48 * lots) {
    words x[4], y[4], first[4], second[4];
    EACH x[k] = load(p + 16 * k), y[k] = load(p + 16 * k + 8);
    EACH first[k] = first_pairs(x[k], y[k]), second[k] = second_pairs(x[k], y[k]);
    EACH butterfly(&first[k], &second[k], load2(tail + 48 * k + 16), m); /* 0 1 4 5 ..., 2 3 6 7 ... */
    EACH x[k] = evens(first[k], second[k]), y[k] = odds(first[k], second[k]);
    EACH butterfly(&x[k], &y[k], load2(tail + 48 * k + 32), m); /* 0 2 ..., 1 3 ... */
    EACH x[k] = tight(x[k], m), y[k] = tight(y[k], m);
    if (to_residues) EACH x[k] = less_q(x[k], m), y[k] = less_q(y[k], m);
    EACH store(p + 16 * k, zipped_first(x[k], y[k])), store(p + 16 * k + 8, zipped_second(x[k], y[k]));
  }
}

LANE void forward_tail(uint64_t *p, const uint64_t *from, const multiplier *root, const uint64_t *tail, int count,
                       const int to_residues, modulus m) {
  if (count % 64 == 0) {
    forward_tail1(p, from, root, tail, count, 4, m);
    forward_tail2(p, tail, count, to_residues, 4, m);
  } else {
    forward_tail1(p, from, root, tail, count, 2, m);
    forward_tail2(p, tail, count, to_residues, 2, m);
  }
}

/* forward2 where y is zero from `used` values on. */
LANE void forward2_short(const integers_plan *t, uint64_t *p, const uint64_t *from, int half, int group, int used,
                         modulus m) {
  lanes_multiplier w = spread2(t->root[group]);
  for (int i = 0; i < half; i += 8) {
    words x = load(from + i), y = x;
    if (i < used) {
      y = load(from + half + i);
      butterfly(&x, &y, w, m);
    }
    store(p + i, x);
    store(p + half + i, y);
  }
}

/* The levels of block number `block` among all blocks of `size` values, of which it needs nothing else. If they are
   coefficients, so many are `used`, and the others zero; else `used` is 0. */
LANE void forward_block(const integers_plan *t, uint64_t *p, const uint64_t *from, int size, int block, int used,
                        const int to_residues, modulus m) {
  int groups = t->n / size, inside = 1, s = size;
  if (__builtin_ctz((unsigned)size) % 2 == 1) { /* an odd number of levels before the tail */
    if (used) forward2_short(t, p, from, s / 2, groups + block, used - s / 2, m);
    else forward2(t, p, from, s / 2, groups + block, 0, m);
    inside = 2, s /= 2, from = p;
  }
  for (; s > 16; inside *= 4, s /= 4, from = p) {
    for (int j = 0; j < inside; j++) {
      ptrdiff_t at = (ptrdiff_t)j * s;
      forward4(t, p + at, from + at, s / 4, (groups + block) * inside + j, 0, m);
    }
  }
  ptrdiff_t sixteenth = (ptrdiff_t)block * (size / 16);
  forward_tail(p, from, t->root + t->n / 16 + sixteenth, t->tail + sixteenth * 48, size, to_residues, m);
}

LANE void forward(const integers_plan *t, uint64_t *p, const int to_residues) {
  modulus m = modulus_of(t);
  int s = t->n, groups = 1;
  if (s > LEAF) {
    forward4(t, p, p, s / 4, 1, 1, m);
    s /= 4, groups = 4;
  }
  for (; s > LEAF; s /= 2, groups *= 2) {
    for (int j = 0; j < groups; j++) {
      uint64_t *block = p + (ptrdiff_t)j * s;
      forward2(t, block, block, s / 2, groups + j, 0, m);
    }
  }
  for (int j = 0; j < groups; j++) {
    uint64_t *block = p + (ptrdiff_t)j * s;
    forward_block(t, block, block, s, j, 0, to_residues, m);
  }
}

/* Backward: (x, y) to (x + y, w (x - y)), residues before and afterwards. */
LANE void backward_butterfly(words *x, words *y, lanes_multiplier w, modulus m) {
  words a = *x, b = *y;
  *x = less_q(add(a, b), m);
  *y = plus_q(times(plus_q(sub(a, b), m), w, m), m);
}

/* The last one of all, with 1/n in w. */
LANE void last_butterfly(words *x, words *y, lanes_multiplier shrink, lanes_multiplier w, modulus m) {
  backward_butterfly(x, y, w, m);
  *x = plus_q(times(*x, shrink, m), m);
}

LANE void backward2(const integers_plan *t, uint64_t *p, int half, int group, modulus m) {
  int last = group == 1;
  lanes_multiplier w = spread2(last ? t->last : t->root[group]), shrink = spread2(t->shrink);
  for (int i = 0; i < half; i += 8) {
    words x = load(p + i), y = load(p + half + i);
    if (last) last_butterfly(&x, &y, shrink, w, m);
    else backward_butterfly(&x, &y, w, m);
    store(p + i, x);
    store(p + half + i, y);
  }
}

LANE void backward4(const integers_plan *t, uint64_t *p, int step, int group, modulus m) {
  int last = group == 1;
  lanes_multiplier w = spread2(last ? t->last : t->root[group]), shrink = spread2(t->shrink);
  lanes_multiplier v0 = spread2(t->root[2 * group]), v1 = spread2(t->root[2 * group + 1]);
  for (int i = 0; i < step; i += 8) {
    uint64_t *z = p + i;
    words a = load(z), b = load(z + step), c = load(z + 2 * step), d = load(z + 3 * step);
    backward_butterfly(&a, &b, v0, m);
    backward_butterfly(&c, &d, v1, m);
    if (last) {
      last_butterfly(&a, &c, shrink, w, m);
      last_butterfly(&b, &d, shrink, w, m);
    } else {
      backward_butterfly(&a, &c, w, m);
      backward_butterfly(&b, &d, w, m);
    }
    store(z, a);
    store(z + step, b);
    store(z + 2 * step, c);
    store(z + 3 * step, d);
  }
}

/* The first four levels, within every sixteen residues, likewise. */
LANE void backward_tail1(uint64_t *p, const uint64_t *tail, int count, const int lots, modulus m) {
  for (int i = 0; i < count; i += 16 * lots, p += 16 * lots, tail += 48 * lots) {
    words x[4], y[4], first[4], second[4];
    EACH x[k] = load(p + 16 * k), y[k] = load(p + 16 * k + 8);
    EACH first[k] = all_evens(x[k], y[k]), second[k] = all_odds(x[k], y[k]);
    EACH backward_butterfly(&first[k], &second[k], load2(tail + 48 * k + 32), m);
    EACH x[k] = evens(first[k], second[k]), y[k] = odds(first[k], second[k]);
    EACH backward_butterfly(&x[k], &y[k], load2(tail + 48 * k + 16), m);
    EACH store(p + 16 * k, x[k]), store(p + 16 * k + 8, y[k]);
  }
}

LANE void backward_tail2(uint64_t *p, const multiplier *root, const uint64_t *tail, int count, const int lots,
                         modulus m) {
  for (int i = 0; i < count; i += 16 * lots, p += 16 * lots, tail += 48 * lots, root += lots) {
    words x[4], y[4], first[4], second[4];
    EACH x[k] = load(p + 16 * k), y[k] = load(p + 16 * k + 8);
    EACH first[k] = first_pairs(x[k], y[k]), second[k] = second_pairs(x[k], y[k]);
    EACH backward_butterfly(&first[k], &second[k], load2(tail + 48 * k), m);
    EACH x[k] = first_halves(first[k], second[k]), y[k] = second_halves(first[k], second[k]);
    EACH backward_butterfly(&x[k], &y[k], spread2(root[k]), m);
    EACH store(p + 16 * k, x[k]), store(p + 16 * k + 8, y[k]);
  }
}

LANE void backward_tail(uint64_t *p, const multiplier *root, const uint64_t *tail, int count, modulus m) {
  if (count % 64 == 0) {
    backward_tail1(p, tail, count, 4, m);
    backward_tail2(p, root, tail, count, 4, m);
  } else {
    backward_tail1(p, tail, count, 2, m);
    backward_tail2(p, root, tail, count, 2, m);
  }
}

/* The levels from blocks of `from` residues to blocks of `size`, at `start` of the whole. */
LANE void backward_levels(const integers_plan *t, uint64_t *p, int start, int from, int size, modulus m) {
  int s = from;
  for (; 4 * s <= size; s *= 4) {
    int groups = t->n / (4 * s);
    for (int i = 0; i < size; i += 4 * s) backward4(t, p + i, s, groups + (start + i) / (4 * s), m);
  }
  if (s < size) backward2(t, p, s, t->n / (2 * s) + start / (2 * s), m);
}

KERNEL void atoll_integers_forward(const integers_plan *t, uint64_t *p) { forward(t, p, 1); }

KERNEL void atoll_integers_backward(const integers_plan *t, uint64_t *p) {
  modulus m = modulus_of(t);
  int leaf = t->n < LEAF ? t->n : LEAF;
  for (int start = 0; start < t->n; start += leaf) {
    backward_tail(p + start, t->root + (t->n + start) / 16, t->tail + (ptrdiff_t)start * 3, leaf, m);
    backward_levels(t, p + start, start, 16, leaf, m);
  }
  backward_levels(t, p, 0, leaf, t->n, m);
}

/* While the upper half of what is left is zero, a level only copies the lower one: all blocks of the smallest
   size that holds the coefficients start from the same ones. */
KERNEL void atoll_integers_forward_short(const integers_plan *t, uint64_t *p, int used) {
  int size = t->n;
  while (size >= 64 && size / 2 >= used) size /= 2;
  if (size > LEAF) size = t->n;
  memset(p + used, 0, (size_t)(size - used) * sizeof *p);
  if (size > LEAF) {
    forward(t, p, 0);
    return;
  }
  modulus m = modulus_of(t);
  for (int block = t->n / size - 1; block >= 0; block--) {
    forward_block(t, p + (ptrdiff_t)block * size, p, size, block, used, 0, m);
  }
}

KERNEL void atoll_integers_factor(const integers_plan *t, uint64_t *p, int count) {
  modulus m = modulus_of(t);
  lanes_multiplier base = spread2(t->base);
  for (int i = 0; i < count; i += 8) store(p + i, plus_q(times(load(p + i), base, m), m));
}

KERNEL void atoll_integers_multiply(const integers_plan *t, uint64_t *out, const uint64_t *x, const uint64_t *y,
                                    int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 8) store(out + i, plus_q(product(load(x + i), load(y + i), m), m));
}

KERNEL void atoll_integers_multiply_add(const integers_plan *t, uint64_t *sum, const uint64_t *x, const uint64_t *y,
                                        int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 8) {
    words added = add(load(sum + i), product(load(x + i), load(y + i), m)); /* loose */
    store(sum + i, less_q(tight(added, m), m));
  }
}

KERNEL void atoll_integers_multiply_sub(const integers_plan *t, uint64_t *sum, const uint64_t *x, const uint64_t *y,
                                        int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 8) {
    words left = sub(load(sum + i), product(load(x + i), load(y + i), m)); /* loose */
    store(sum + i, less_q(tight(left, m), m));
  }
}

KERNEL void atoll_integers_add(const integers_plan *t, uint64_t *x, const uint64_t *y, int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 8) {
    __mmask8 lanes = lanes_left(count - i);
    words sum = add(_mm512_maskz_loadu_epi64(lanes, x + i), _mm512_maskz_loadu_epi64(lanes, y + i));
    _mm512_mask_storeu_epi64(x + i, lanes, less_q(sum, m));
  }
}

/* The products of `blocks` blocks, which the compiler unrolls. The four sums of eight points, a cache line each, lie
   side by side. */
LANE void accumulate(uint64_t *s, const uint64_t *x, const uint64_t *y, const uint64_t *b, int size, const int blocks,
                     ptrdiff_t left, ptrdiff_t right) {
  for (int i = 0; i < size; i += 8, s += 32) {
    words high0 = load(s), low0 = load(s + 8), high1 = load(s + 16), low1 = load(s + 24);
    for (int j = 0; j < blocks; j++) {
      words u = load(x + j * left + i), v = load(y + j * left + i), f = load(b + j * right + i);
      high0 = add_high(high0, u, f), low0 = add_low(low0, u, f);
      high1 = add_high(high1, v, f), low1 = add_low(low1, v, f);
    }
    store(s, high0), store(s + 8, low0), store(s + 16, high1), store(s + 24, low1);
  }
}

KERNEL void atoll_integers_accumulate(uint64_t *sums, const uint64_t *x, const uint64_t *y, const uint64_t *b, int size,
                                      int count, ptrdiff_t left, ptrdiff_t right) {
  int j = 0;
  for (; j + 4 <= count; j += 4) accumulate(sums, x + j * left, y + j * left, b + j * right, size, 4, left, right);
  for (; j < count; j++) accumulate(sums, x + j * left, y + j * left, b + j * right, size, 1, left, right);
}

/* high 2^52 + low modulo q, where both have all 64 bits: cut each at 52 bits, of which one is worth short_of. */
LANE words joined(words high, words low, lanes_multiplier base, modulus m) {
  words upper = add_low(_mm512_and_si512(high, m.mask), _mm512_srli_epi64(high, 52), m.short_of);
  words lower = add_low(_mm512_and_si512(low, m.mask), _mm512_srli_epi64(low, 52), m.short_of);
  words sum = add(times(less_q(upper, m), base, m), less_q(lower, m)); /* loose */
  return less_q(tight(sum, m), m);
}

KERNEL void atoll_integers_reduce(const integers_plan *t, uint64_t *first, uint64_t *second, const uint64_t *sums,
                                  int size) {
  modulus m = modulus_of(t);
  lanes_multiplier base = spread2(t->base);
  for (int i = 0; i < size; i += 8, sums += 32) {
    store(first + i, joined(load(sums), load(sums + 8), base, m));
    store(second + i, joined(load(sums + 16), load(sums + 24), base, m));
  }
}

KERNEL void atoll_integers_add_part(const integers_plan *t, uint64_t *sums, uint64_t *work, const uint64_t *small,
                                    ptrdiff_t small_step, const uint64_t *x, const uint64_t *y, ptrdiff_t left, int size,
                                    int used, int part, int rows, int inner) {
  modulus m = modulus_of(t);
  for (int from = 0; from < inner; from += 4) {
    int count = inner - from < 4 ? inner - from : 4;
    for (int j = 0; j < count; j++) {
      forward_block(t, work + j * size, small + (from + j) * small_step, size, part, used, 0, m);
    }
    for (int row = 0; row < rows; row++) {
      ptrdiff_t at = ((ptrdiff_t)row * inner + from) * left;
      atoll_integers_accumulate(sums + (ptrdiff_t)4 * size * row, x + at, y + at, work, size, count, left, size);
    }
  }
}
