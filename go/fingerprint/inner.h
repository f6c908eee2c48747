/* Sums of products of 64-bit words, in 128 bits: a C compiler does well what Go's does slowly. */
#ifndef ATOLL_INNER_H
#define ATOLL_INNER_H

#include <stddef.h>
#include <stdint.h>

/* For the library itself, not for those who load it. */
#pragma GCC visibility push(hidden)

/* For every word of `count` integers of `size` bytes, least significant first: the sums of its products with the
   numbers of x, and with those of y, low words first. A word is seven bytes, the last one what is left. The eight
   bytes from the beginning of any word on must be readable. */
void atoll_inner_words(uint64_t (*sums)[4], const uint8_t *data, size_t size, size_t count, const uint64_t *x,
                       const uint64_t *y);

/* The same for words of eight bytes. */
void atoll_inner(uint64_t sums[4], const uint64_t *words, size_t count, const uint64_t *x, const uint64_t *y);

#pragma GCC visibility pop
#endif
