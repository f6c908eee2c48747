/* The kernels on AVX-512 IFMA, which multiplies integers of 52 bits; doc.go says why they are exact. The counterpart
   of kernels.h. Lengths of transforms are powers of two from 32, of sums and multiplications multiples of eight. */
#ifndef ATOLL_INTEGERS_H
#define ATOLL_INTEGERS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A factor w as w 2^52 modulo q, and that divided by q modulo 2^52. */
typedef struct {
  uint64_t value, quotient;
} multiplier;

/* One direction of a transform of n points modulo q = 2^52 - short_of. */
typedef struct {
  uint64_t q, short_of, inverse; /* inverse: 1 / q modulo 2^52 */
  int n;
  const multiplier *root; /* root[groups + i] belongs to group i of the level with so many groups */
  const uint64_t *tail;   /* for every sixteen residues: values and quotients of three levels, eight lanes each */
  multiplier shrink;      /* 1 / n, of the backward direction */
  multiplier last;        /* shrink times root[1] */
  multiplier base;        /* 2^52: brings a factor to its form, and joins the halves of sums */
} integers_plan;

/* Transforms in place; residues in, residues out. */
void atoll_integers_forward(const integers_plan *t, uint64_t *p);
void atoll_integers_backward(const integers_plan *t, uint64_t *p);

/* Residues to factors, in place. */
void atoll_integers_factor(const integers_plan *t, uint64_t *p, int count);

/* Forward, in place, of residues, zero from `used` on whatever is there; operands out, which are below 2^52. */
void atoll_integers_forward_short(const integers_plan *t, uint64_t *p, int used);

/* out = x y, sum += x y, sum -= x y: residues x, factors y. */
void atoll_integers_multiply(const integers_plan *t, uint64_t *out, const uint64_t *x, const uint64_t *y, int count);
void atoll_integers_multiply_add(const integers_plan *t, uint64_t *sum, const uint64_t *x, const uint64_t *y, int count);
void atoll_integers_multiply_sub(const integers_plan *t, uint64_t *sum, const uint64_t *x, const uint64_t *y, int count);

/* x += y, residues; any count. */
void atoll_integers_add(const integers_plan *t, uint64_t *x, const uint64_t *y, int count);

/* As in kernels.h, with operands below 2^52. */
void atoll_integers_accumulate(uint64_t *sums, const uint64_t *x, const uint64_t *y, const uint64_t *b, int size,
                               int count, ptrdiff_t left, ptrdiff_t right);
void atoll_integers_reduce(const integers_plan *t, uint64_t *first, uint64_t *second, const uint64_t *sums, int size);
/* The short polynomials are integers below 2^51 in magnitude. */
void atoll_integers_add_part(const integers_plan *t, uint64_t *sums, uint64_t *work, const uint64_t *small,
                             ptrdiff_t small_step, const uint64_t *x, const uint64_t *y, ptrdiff_t left, int size,
                             int used, int part, int rows, int inner);

/* 52 bits each, two residues in thirteen bytes. Unpacking gives nonzero where one is not below q. */
void atoll_integers_pack(uint8_t *out, const uint64_t *x, int count);
int atoll_integers_unpack(uint64_t *x, const uint8_t *in, int count, uint64_t q);
int atoll_integers_unpack_add(uint64_t *x, const uint8_t *in, int count, uint64_t q);

/* Of at most 4096 packed residues: the sum of products with the numbers of y, and with those of z, below 2^52 each, as
   two words each, the lower one first; the result as for unpacking. */
int atoll_integers_inner(uint64_t sums[4], const uint8_t *in, int count, uint64_t q, const uint64_t *y,
                         const uint64_t *z);

#pragma GCC visibility pop

#endif
