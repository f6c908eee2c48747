/* The kernels in terms of four lanes; included once, after the lanes of one processor.

   Residues are doubles: integers x with |x| <= q/2 + 2 ("balanced") or, between two steps, |x| < 2^53.
   The bounds in the comments are those of doc.go. Nothing branches on a value or uses it as an address. */
#include "kernels.h"

#include <string.h>

/* What is written as two operations must stay two: x y + z fused by the compiler gives another result. cgo does not
   take -ffp-contract=off; GCC implies it in a standard mode (-std=c11), Clang has the pragma. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#elif !defined(__STRICT_ANSI__)
#error "compile with -std=c11, or products are fused behind our back"
#endif
#ifdef __FAST_MATH__
#error "the kernels need arithmetic as it is written: no -ffast-math"
#endif

/* So many doubles, 16 kB, are transformed to the end before the next ones are touched. */
#define LEAF 2048

/* Integers below 2^52 are the low bits of doubles in [2^52, 2^53). */
#define MAGIC 0x1p52

typedef struct {
  doubles q, inverse;
} modulus;

typedef struct {
  doubles value, quotient;
} lanes_factor;

LANE modulus modulus_of(const plan *t) { return (modulus){d_set(t->q), d_set(t->inverse)}; }
LANE lanes_factor spread(factor w) { return (lanes_factor){d_set(w.value), d_set(w.quotient)}; }
LANE lanes_factor load_factor(const double *p) { return (lanes_factor){d_load(p), d_load(p + 4)}; }

/* |x| < 2^53 to |x| <= q/2 + 2. */
LANE doubles reduced(doubles x, modulus m) { return d_fnma(d_round(d_mul(x, m.inverse)), m.q, x); }

/* |x| <= 2q to |x| <= q. */
LANE doubles halved(doubles x, modulus m) { return d_sub(x, d_signed(m.q, x)); }

/* y w - count q. */
LANE doubles remainder_of(doubles y, doubles w, doubles count, modulus m) {
  doubles high = d_mul(y, w), low = d_fms(y, w, high);
  return d_add(d_fnma(count, m.q, high), low);
}

/* y w modulo q for |y| <= 2q and |w| < q/2; at most q. */
LANE doubles times(doubles y, lanes_factor w, modulus m) {
  return remainder_of(y, w.value, d_round(d_mul(y, w.quotient)), m);
}

/* x y modulo q for balanced x and y; below 0.76 q. */
LANE doubles product(doubles x, doubles y, modulus m) {
  return remainder_of(x, y, d_round(d_mul(d_mul(x, y), m.inverse)), m);
}

/* 2^52 + x of a residue x, whose low bits these are. */
LANE doubles raised(words x) { return w_double(w_or(x, d_bits(d_set(MAGIC)))); }

LANE doubles from_words(words x) { return d_sub(raised(x), d_set(MAGIC)); }

LANE doubles load_whole(const void *p) { return from_words(w_load(p)); }

/* Residues in [0, q) to |x| <= (q - 1)/2. */
LANE doubles load_balanced(const uint64_t *p, modulus m) {
  doubles x = raised(w_load(p)), half = d_add(d_mul(m.q, d_set(0.5)), d_set(MAGIC - 0.5));
  return d_sub(x, d_if_negative(d_sub(half, x), d_add(m.q, d_set(MAGIC)), d_set(MAGIC)));
}

/* -q <= x < q, not a negative zero, to residues in [0, q), as words. */
LANE doubles to_words(doubles x, modulus m) {
  doubles above = d_add(x, d_if_negative(x, d_add(m.q, d_set(MAGIC)), d_set(MAGIC)));
  return w_double(w_xor(d_bits(above), d_bits(d_set(MAGIC))));
}

LANE void store_residues(uint64_t *p, doubles x, modulus m) { d_store(p, to_words(x, m)); }

/* Forward: (x, y) to (x + w y, x - w y). |x| and |y| may be up to 2q, and are so again afterwards. */
LANE void butterfly(doubles *x, doubles *y, lanes_factor w, modulus m) {
  doubles a = halved(*x, m), b = times(*y, w, m);
  *x = d_add(a, b);
  *y = d_sub(a, b);
}

/* The same from up to q. */
LANE void first_butterfly(doubles *x, doubles *y, lanes_factor w, modulus m) {
  doubles a = *x, b = times(*y, w, m);
  *x = d_add(a, b);
  *y = d_sub(a, b);
}

/* One level: two halves of `half` values each, from one place to another. */
LANE void forward2(const plan *t, double *p, const double *from, int half, int group, modulus m) {
  lanes_factor w = spread(t->root[group]);
  for (int i = 0; i < half; i += 4) {
    doubles x = d_load(from + i), y = d_load(from + half + i);
    butterfly(&x, &y, w, m);
    d_store(p + i, x);
    d_store(p + half + i, y);
  }
}

/* Two levels at once: four quarters of `step` values each; fresh ones are residues still. */
LANE void forward4(const plan *t, double *p, const double *from, int step, int group, const int fresh, modulus m) {
  lanes_factor w = spread(t->root[group]);
  lanes_factor v0 = spread(t->root[2 * group]), v1 = spread(t->root[2 * group + 1]);
  for (int i = 0; i < step; i += 4) {
    const double *x = from + i;
    double *z = p + i;
    doubles a, b, c, d;
    if (fresh) {
      a = load_whole(x), b = load_whole(x + step), c = load_whole(x + 2 * step), d = load_whole(x + 3 * step);
      first_butterfly(&a, &c, w, m);
      first_butterfly(&b, &d, w, m);
    } else {
      a = d_load(x), b = d_load(x + step), c = d_load(x + 2 * step), d = d_load(x + 3 * step);
      butterfly(&a, &c, w, m);
      butterfly(&b, &d, w, m);
    }
    butterfly(&a, &b, v0, m);
    butterfly(&c, &d, v1, m);
    d_store(z, a);
    d_store(z + step, b);
    d_store(z + 2 * step, c);
    d_store(z + 3 * step, d);
  }
}

/* Sixteen values as four times four: x[k] holds those at places k, 4 + k, 8 + k, 12 + k, in the order 0 1 2 3 of rows. */
LANE void load_columns(const double *p, doubles x[4]) {
  doubles a = d_load_halves(p, p + 8), b = d_load_halves(p + 2, p + 10);
  doubles c = d_load_halves(p + 4, p + 12), d = d_load_halves(p + 6, p + 14);
  x[0] = d_evens(a, c), x[1] = d_odds(a, c), x[2] = d_evens(b, d), x[3] = d_odds(b, d);
}

LANE void store_columns(double *p, const doubles x[4]) {
  d_store_halves(p, p + 8, d_evens(x[0], x[1]));
  d_store_halves(p + 2, p + 10, d_evens(x[2], x[3]));
  d_store_halves(p + 4, p + 12, d_odds(x[0], x[1]));
  d_store_halves(p + 6, p + 14, d_odds(x[2], x[3]));
}

/* The last two levels, within every four values, of sixteen at once. */
LANE void forward_tail(const plan *t, double *p, const double *from, int start, int count, modulus m) {
  const double *tail = t->tail + (ptrdiff_t)start * 3 / 2;
  for (int i = 0; i < count; i += 16, tail += 24) {
    doubles x[4];
    load_columns(from + i, x);
    lanes_factor w = load_factor(tail), v0 = load_factor(tail + 8), v1 = load_factor(tail + 16);
    butterfly(&x[0], &x[2], w, m);
    butterfly(&x[1], &x[3], w, m);
    butterfly(&x[0], &x[1], v0, m);
    butterfly(&x[2], &x[3], v1, m);
    store_columns(p + i, x);
  }
}

/* |x| < 2q to residues, or to balanced ones. A step of its own: where each operation waits for the one before, the
   processor sees more that does not wait. */
LANE void finish(double *p, int count, const int to_residues, modulus m) {
  for (int i = 0; i < count; i += 4) {
    doubles x = d_load(p + i);
    d_store(p + i, to_residues ? to_words(halved(x, m), m) : reduced(x, m));
  }
}

/* forward2 where y is zero from `used` values on. */
LANE void forward2_short(const plan *t, double *p, const double *from, int half, int group, int used, modulus m) {
  lanes_factor w = spread(t->root[group]);
  for (int i = 0; i < half; i += 4) {
    doubles x = d_load(from + i), y = x;
    if (i < used) {
      y = d_load(from + half + i);
      first_butterfly(&x, &y, w, m);
    }
    d_store(p + i, x);
    d_store(p + half + i, y);
  }
}

/* The levels of block number `block` among all blocks of `size` values, of which it needs nothing else. If they are
   coefficients, so many are `used` and below q, and the others zero; else `used` is 0. */
LANE void forward_block(const plan *t, double *p, const double *from, int size, int block, int used,
                        const int to_residues, modulus m) {
  int groups = t->n / size, inside = 1, s = size;
  if (__builtin_ctz((unsigned)size) % 2 == 1) { /* an odd number of levels before the tail */
    if (used) forward2_short(t, p, from, s / 2, groups + block, used - s / 2, m);
    else forward2(t, p, from, s / 2, groups + block, m);
    inside = 2, s /= 2, from = p;
  }
  for (; s > 4; inside *= 4, s /= 4, from = p) {
    for (int j = 0; j < inside; j++) {
      ptrdiff_t at = (ptrdiff_t)j * s;
      forward4(t, p + at, from + at, s / 4, (groups + block) * inside + j, 0, m);
    }
  }
  forward_tail(t, p, from, block * size, size, m);
  finish(p, size, to_residues, m);
}

static KERNEL void balance(const plan *t, uint64_t *p, int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 4) d_store(p + i, load_balanced(p + i, m));
}

/* From residues. */
LANE void forward(const plan *t, uint64_t *words, const int to_residues) {
  modulus m = modulus_of(t);
  double *p = (double *)words;
  int s = t->n, groups = 1;
  if (s > LEAF) {
    forward4(t, p, p, s / 4, 1, 1, m);
    s /= 4, groups = 4;
  } else {
    balance(t, words, s);
  }
  for (; s > LEAF; s /= 2, groups *= 2) {
    for (int j = 0; j < groups; j++) {
      double *block = p + (ptrdiff_t)j * s;
      forward2(t, block, block, s / 2, groups + j, m);
    }
  }
  for (int j = 0; j < groups; j++) {
    double *block = p + (ptrdiff_t)j * s;
    forward_block(t, block, block, s, j, 0, to_residues, m);
  }
}

/* Backward: (x, y) to (x + y, w (x - y)). |x| and |y| may be up to q, and are so again afterwards. */
LANE void backward_butterfly(doubles *x, doubles *y, lanes_factor w, modulus m) {
  doubles a = *x, b = *y;
  *x = halved(d_add(a, b), m);
  *y = times(d_sub(a, b), w, m);
}

/* The last one of all, with 1/n in w. */
LANE void last_butterfly(doubles *x, doubles *y, lanes_factor shrink, lanes_factor w, modulus m) {
  doubles a = *x, b = *y;
  *x = to_words(times(d_add(a, b), shrink, m), m);
  *y = to_words(times(d_sub(a, b), w, m), m);
}

LANE void backward2(const plan *t, double *p, int half, int group, modulus m) {
  int last = group == 1;
  lanes_factor w = spread(last ? t->last : t->root[group]), shrink = spread(t->shrink);
  for (int i = 0; i < half; i += 4) {
    doubles x = d_load(p + i), y = d_load(p + half + i);
    if (last) last_butterfly(&x, &y, shrink, w, m);
    else backward_butterfly(&x, &y, w, m);
    d_store(p + i, x);
    d_store(p + half + i, y);
  }
}

LANE void backward4(const plan *t, double *p, int step, int group, modulus m) {
  int last = group == 1;
  lanes_factor w = spread(last ? t->last : t->root[group]), shrink = spread(t->shrink);
  lanes_factor v0 = spread(t->root[2 * group]), v1 = spread(t->root[2 * group + 1]);
  for (int i = 0; i < step; i += 4) {
    double *z = p + i;
    doubles a = d_load(z), b = d_load(z + step), c = d_load(z + 2 * step), d = d_load(z + 3 * step);
    backward_butterfly(&a, &b, v0, m);
    backward_butterfly(&c, &d, v1, m);
    if (last) {
      last_butterfly(&a, &c, shrink, w, m);
      last_butterfly(&b, &d, shrink, w, m);
    } else {
      backward_butterfly(&a, &c, w, m);
      backward_butterfly(&b, &d, w, m);
    }
    d_store(z, a);
    d_store(z + step, b);
    d_store(z + 2 * step, c);
    d_store(z + 3 * step, d);
  }
}

/* The first two levels, within every four residues, of sixteen at once. */
LANE void backward_tail(const plan *t, double *p, int start, int count, modulus m) {
  const double *tail = t->tail + (ptrdiff_t)start * 3 / 2;
  for (int i = 0; i < count; i += 16, tail += 24) {
    doubles x[4];
    load_columns(p + i, x);
    for (int k = 0; k < 4; k++) x[k] = from_words(d_bits(x[k]));
    lanes_factor w = load_factor(tail), v0 = load_factor(tail + 8), v1 = load_factor(tail + 16);
    backward_butterfly(&x[0], &x[1], v0, m);
    backward_butterfly(&x[2], &x[3], v1, m);
    backward_butterfly(&x[0], &x[2], w, m);
    backward_butterfly(&x[1], &x[3], w, m);
    store_columns(p + i, x);
  }
}

/* The levels from blocks of `from` residues to blocks of `size`, at `start` of the whole. */
LANE void backward_levels(const plan *t, double *p, int start, int from, int size, modulus m) {
  int s = from;
  for (; 4 * s <= size; s *= 4) {
    int groups = t->n / (4 * s);
    for (int i = 0; i < size; i += 4 * s) backward4(t, p + i, s, groups + (start + i) / (4 * s), m);
  }
  if (s < size) backward2(t, p, s, t->n / (2 * s) + start / (2 * s), m);
}

KERNEL void atoll_forward(const plan *t, uint64_t *p) { forward(t, p, 1); }

KERNEL void atoll_backward(const plan *t, uint64_t *words) {
  modulus m = modulus_of(t);
  double *p = (double *)words;
  int leaf = t->n < LEAF ? t->n : LEAF;
  for (int start = 0; start < t->n; start += leaf) {
    backward_tail(t, p + start, start, leaf, m);
    backward_levels(t, p + start, start, 4, leaf, m);
  }
  backward_levels(t, p, 0, leaf, t->n, m);
}

KERNEL void atoll_balance(const plan *t, uint64_t *p, int count) { balance(t, p, count); }

/* While the upper half of what is left is zero, a level only copies the lower one: all blocks of the smallest
   size that holds the coefficients start from the same ones. */
KERNEL void atoll_forward_short(const plan *t, uint64_t *p, int used) {
  double *d = (double *)p;
  int size = t->n;
  while (size >= 32 && size / 2 >= used) size /= 2;
  if (size > LEAF) size = t->n;
  memset(p + used, 0, (size_t)(size - used) * sizeof *p);
  if (size > LEAF) {
    forward(t, p, 0);
    return;
  }
  balance(t, p, size);
  modulus m = modulus_of(t);
  for (int block = t->n / size - 1; block >= 0; block--) {
    forward_block(t, d + (ptrdiff_t)block * size, d, size, block, used, 0, m);
  }
}

KERNEL void atoll_multiply(const plan *t, uint64_t *out, const uint64_t *x, const double *y, int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 4) store_residues(out + i, product(load_balanced(x + i, m), d_load(y + i), m), m);
}

KERNEL void atoll_multiply_add(const plan *t, uint64_t *sum, const uint64_t *x, const double *y, int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 4) {
    doubles added = product(load_balanced(x + i, m), d_load(y + i), m);
    store_residues(sum + i, halved(d_add(load_whole(sum + i), added), m), m);
  }
}

KERNEL void atoll_multiply_sub(const plan *t, uint64_t *sum, const uint64_t *x, const double *y, int count) {
  modulus m = modulus_of(t);
  for (int i = 0; i < count; i += 4) {
    doubles taken = product(load_balanced(x + i, m), d_load(y + i), m);
    store_residues(sum + i, halved(d_sub(load_whole(sum + i), taken), m), m);
  }
}

/* x + y, below 2q, less q where it is not below q. */
LANE words sum_below(words x, words y, words q, words last) {
  words sum = w_add(x, y);
  return w_sub(sum, w_and(w_greater(sum, last), q));
}

static inline uint64_t sum_below1(uint64_t x, uint64_t y, uint64_t q) {
  uint64_t sum = x + y;
  return sum - (q & -(uint64_t)(sum >= q));
}

KERNEL void atoll_add(const plan *t, uint64_t *x, const uint64_t *y, int count) {
  uint64_t q = (uint64_t)t->q;
  words all = w_set(q), last = w_set(q - 1);
  int i = 0;
  for (; i + 4 <= count; i += 4) w_store(x + i, sum_below(w_load(x + i), w_load(y + i), all, last));
  for (; i < count; i++) x[i] = sum_below1(x[i], y[i], q);
}

/* Sums of products: u f = H 2^51 + L exactly, by adding 1.5 2^103, whose last bit is worth 2^51. The bits of
   both halves are those of a constant plus H and L; they are added up as integers, constants included. */
#define HIGH_BASE 0x1.8p103
#define LOW_BASE 0x1.8p52

LANE void add_halves(doubles u, doubles f, words *high, words *low) {
  doubles h = d_fma(u, f, d_set(HIGH_BASE));
  doubles l = d_fma(u, f, d_sub(d_set(HIGH_BASE + LOW_BASE), h));
  *high = w_add(*high, d_bits(h));
  *low = w_add(*low, d_bits(l));
}

/* The products of `blocks` blocks, which the compiler unrolls: two at most, because blocks lie powers of two apart and
   so share their places in the cache, of which there are eight. For the same reason the four sums of eight points,
   a cache line each, lie side by side. */
LANE void accumulate(uint64_t *s, const double *x, const double *y, const double *b, int size, const int blocks,
                     ptrdiff_t left, ptrdiff_t right) {
  for (int i = 0; i < size; i += 8, s += 32) {
    words high0 = w_load(s), high0b = w_load(s + 4), low0 = w_load(s + 8), low0b = w_load(s + 12);
    words high1 = w_load(s + 16), high1b = w_load(s + 20), low1 = w_load(s + 24), low1b = w_load(s + 28);
    for (int j = 0; j < blocks; j++) {
      const double *u = x + j * left + i, *v = y + j * left + i, *f = b + j * right + i;
      add_halves(d_load(u), d_load(f), &high0, &low0);
      add_halves(d_load(u + 4), d_load(f + 4), &high0b, &low0b);
      add_halves(d_load(v), d_load(f), &high1, &low1);
      add_halves(d_load(v + 4), d_load(f + 4), &high1b, &low1b);
    }
    w_store(s, high0), w_store(s + 4, high0b), w_store(s + 8, low0), w_store(s + 12, low0b);
    w_store(s + 16, high1), w_store(s + 20, high1b), w_store(s + 24, low1), w_store(s + 28, low1b);
  }
}

KERNEL void atoll_accumulate(uint64_t *sums, const double *x, const double *y, const double *b, int size, int count,
                             ptrdiff_t left, ptrdiff_t right) {
  int j = 0;
  for (; j + 2 <= count; j += 2) accumulate(sums, x + j * left, y + j * left, b + j * right, size, 2, left, right);
  if (j < count) accumulate(sums, x + j * left, y + j * left, b + j * right, size, 1, left, right);
}

static inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* x = sum + 2^63 as x1 2^26 + x0, with the 2^63 taken off x1 again: |x1| <= 2^37, x0 < 2^26. */
LANE void split26(words x, doubles *x1, doubles *x0) {
  words magic = d_bits(d_set(MAGIC));
  *x1 = d_sub(w_double(w_or(w_shift26(x), magic)), d_set(MAGIC + 0x1p37));
  *x0 = d_sub(w_double(w_or(w_and(x, w_set((1 << 26) - 1)), magic)), d_set(MAGIC));
}

KERNEL void atoll_reduce(const plan *t, uint64_t *first, uint64_t *second, const uint64_t *sums, int size,
                         int64_t count) {
  modulus m = modulus_of(t);
  lanes_factor p77 = spread(t->p77), p51 = spread(t->p51), p26 = spread(t->p26);
  words high_bias = w_set((1ull << 63) - (uint64_t)count * bits_of(HIGH_BASE));
  words low_bias = w_set((1ull << 63) - (uint64_t)count * bits_of(LOW_BASE));
  for (int i = 0; i < 2 * size; i += 4) { /* eight points of the first sum, eight of the second, and so on */
    const uint64_t *s = sums + i / 8 * 16 + i % 8;
    uint64_t *out = (i / 8 % 2 == 0 ? first : second) + i / 16 * 8 + i % 8;
    doubles h1, h0, l1, l0;
    split26(w_add(w_load(s), high_bias), &h1, &h0);
    split26(w_add(w_load(s + 8), low_bias), &l1, &l0);
    doubles upper = reduced(d_add(times(h1, p77, m), times(h0, p51, m)), m);
    doubles lower = d_add(times(l1, p26, m), l0);
    store_residues(out, halved(d_add(upper, lower), m), m);
  }
}

KERNEL void atoll_add_part(const plan *t, uint64_t *sums, double *work, const double *small, ptrdiff_t small_step,
                           const double *x, const double *y, ptrdiff_t left, int size, int used, int part,
                           int rows, int inner) {
  modulus m = modulus_of(t);
  for (int from = 0; from < inner; from += 4) {
    int count = inner - from < 4 ? inner - from : 4;
    for (int j = 0; j < count; j++) {
      forward_block(t, work + j * size, small + (from + j) * small_step, size, part, used, 0, m);
    }
    for (int row = 0; row < rows; row++) {
      ptrdiff_t at = ((ptrdiff_t)row * inner + from) * left;
      atoll_accumulate(sums + (ptrdiff_t)4 * size * row, x + at, y + at, work, size, count, left, size);
    }
  }
}

KERNEL void atoll_pack(uint8_t *out, const uint64_t *x, int count) {
  int i = 0;
  for (; i + 8 <= count; i += 4, out += 26) pack4(out, w_load(x + i));
  for (; i + 2 <= count; i += 2, out += 13) {
    uint64_t low = x[i] | x[i + 1] << 52, high = x[i + 1] >> 12;
    memcpy(out, &low, 8);
    memcpy(out + 8, &high, 5);
  }
  if (i < count) memcpy(out, x + i, 7);
}

LANE int unpacked(uint64_t *x, const uint8_t *in, int count, uint64_t q, const int add) {
  const uint64_t mask = (1ull << 52) - 1;
  words all = w_set(q), last = w_set(q - 1), beyond = w_set(0);
  uint64_t wrong = 0;
  int i = 0;
  for (; i + 8 <= count; i += 4, in += 26) {
    words value = unpack4(in);
    beyond = w_or(beyond, w_greater(value, last));
    w_store(x + i, add ? sum_below(value, w_load(x + i), all, last) : value);
  }
  for (; i < count; i += 2, in += 13) {
    uint64_t low = 0, high = 0;
    memcpy(&low, in, i + 1 < count ? 8 : 7);
    uint64_t first = low & mask;
    /* An odd last residue has four bits to spare, which belong to its value here and must be zero. */
    if (i + 1 == count) first = low;
    wrong |= first >= q;
    x[i] = add ? sum_below1(first, x[i], q) : first;
    if (i + 1 == count) break;
    memcpy(&high, in + 8, 5);
    uint64_t second = low >> 52 | high << 12;
    wrong |= second >= q;
    x[i + 1] = add ? sum_below1(second, x[i + 1], q) : second;
  }
  return w_any(beyond) || wrong != 0;
}

KERNEL int atoll_unpack(uint64_t *x, const uint8_t *in, int count, uint64_t q) { return unpacked(x, in, count, q, 0); }

KERNEL int atoll_unpack_add(uint64_t *x, const uint8_t *in, int count, uint64_t q) {
  return unpacked(x, in, count, q, 1);
}
