/* BLAKE3 of whole messages. */
#ifndef ATOLL_DIGEST_H
#define ATOLL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Chaining values of `count` inputs of `blocks` times 64 bytes each, `step` bytes apart: chunks, from the first one on,
   or parents. A value is eight words, the lowest byte first; `out` holds one after the other. `width` is how many are
   made side by side: 4, or 8 with AVX2, 16 with AVX-512. */
void atoll_digest_many(uint8_t *out, const uint8_t *in, size_t step, size_t count, int blocks, int parents, int width);

/* One block, of `size` bytes: flags as BLAKE3 has them. */
void atoll_digest_block(uint8_t value[32], const uint8_t block[64], uint32_t size, uint64_t number, uint32_t flags);

#pragma GCC visibility pop

#endif
