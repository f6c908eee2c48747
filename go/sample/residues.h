/* Random words to residues, eight at a time, in constant time. */
#ifndef ATOLL_RESIDUES_H
#define ATOLL_RESIDUES_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The upper 52 bits of every word, in place; nonzero where one is not below q. */
int atoll_uppers(uint64_t *x, int count, uint64_t q);
/* sample.Binomial, or sample.Ternary, of so many words, modulo each of the moduli: `count` residues each. The words
   are where the first ones go. A count is a multiple of eight. */
void atoll_binomials(uint64_t *x, int count, const uint64_t *moduli, int limbs);
void atoll_ternaries(uint64_t *x, int count, const uint64_t *moduli, int limbs);

#pragma GCC visibility pop

#endif
