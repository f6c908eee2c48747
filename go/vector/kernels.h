/* The kernels on residues as doubles; doc.go says why they are exact. One file per processor compiles them
   (kernels_amd64.c, kernels_arm64.c). Lengths of transforms and sums are multiples of eight and of four. */
#ifndef ATOLL_KERNELS_H
#define ATOLL_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* For the library itself, not for those who load it. */
#pragma GCC visibility push(hidden)

/* A factor w, balanced, and w / q rounded to nearest. */
typedef struct {
  double value, quotient;
} factor;

/* One direction of a transform of n points modulo q. */
typedef struct {
  double q, inverse; /* inverse: 1 / q rounded to nearest */
  int n;
  const factor *root; /* root[groups + i] belongs to group i of the level with so many groups */
  const double *tail; /* for every sixteen residues: values and quotients of two levels, four lanes each */
  factor shrink, last; /* of the backward direction: 1 / n, and 1 / n times the root of the last level */
  factor p77, p51, p26; /* powers of two that join the halves of sums */
} plan;

/* Transforms in place; residues in, residues out. */
void atoll_forward(const plan *t, uint64_t *p);
void atoll_backward(const plan *t, uint64_t *p);

/* Residues to balanced doubles, in place. */
void atoll_balance(const plan *t, uint64_t *p, int count);

/* Forward, in place, of residues, zero from `used` on whatever is there; balanced doubles out. */
void atoll_forward_short(const plan *t, uint64_t *p, int used);

/* out = x y, sum += x y, sum -= x y: residues x, a factor y of balanced doubles. */
void atoll_multiply(const plan *t, uint64_t *out, const uint64_t *x, const double *y, int count);
void atoll_multiply_add(const plan *t, uint64_t *sum, const uint64_t *x, const double *y, int count);
void atoll_multiply_sub(const plan *t, uint64_t *sum, const uint64_t *x, const double *y, int count);

/* x += y, residues; any count. */
void atoll_add(const plan *t, uint64_t *x, const uint64_t *y, int count);

/* Two running sums of products, which share one factor b, are four times `size` words; empty ones are zero. This adds
   the products of `count` blocks of `size` points; `left` and `right` are the distances from block to block. */
void atoll_accumulate(uint64_t *sums, const double *x, const double *y, const double *b, int size, int count,
                      ptrdiff_t left, ptrdiff_t right);

/* Residues of both sums, of `count` products each. */
void atoll_reduce(const plan *t, uint64_t *first, uint64_t *second, const uint64_t *sums, int size, int64_t count);

/* Transforms part number `part` of `inner` short polynomials (`size` coefficients each, zero from `used` on, `small_step`
   apart) and adds their products with the same part of `rows` times `inner` left blocks (`left` apart) to the sums, two
   for every row. `work` has room for four times `size`. */
void atoll_add_part(const plan *t, uint64_t *sums, double *work, const double *small, ptrdiff_t small_step,
                    const double *x, const double *y, ptrdiff_t left, int size, int used, int part, int rows,
                    int inner);

/* 52 bits each, two residues in thirteen bytes. Unpacking gives nonzero where one is not below q. */
void atoll_pack(uint8_t *out, const uint64_t *x, int count);
int atoll_unpack(uint64_t *x, const uint8_t *in, int count, uint64_t q);
int atoll_unpack_add(uint64_t *x, const uint8_t *in, int count, uint64_t q);

#pragma GCC visibility pop

#endif
