/* The key stream of AES-256 in counter mode, on processors that encrypt four blocks at once. */
#ifndef ATOLL_BLOCKS_H
#define ATOLL_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* So many blocks of sixteen bytes, the first one of this counter; counters stay below 2^64. */
void atoll_blocks(uint8_t *out, size_t blocks, const uint8_t key[32], uint64_t counter);

#pragma GCC visibility pop

#endif
