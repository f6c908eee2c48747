// Package ckks computes on encrypted vectors of real numbers in slots, under a
// key that all providers share: the machine that the paper's own routines run on.
//
// Lattigo's evaluator does what needs no secret: sums, products, rotations,
// polynomials. What needs one is written here, on Lattigo's rings: its own
// protocols draw from samplers that the caller cannot seed, and here everything
// random is a function of 32-byte seeds, so a role that is run again from its
// record sends the same bytes.
//
// # One scale for every level
//
// A ciphertext at level l has scale S_l, always: S_L = 2^38 at the top and
// S_(l-1) = S_l^2 / q_l below, which is what a product and a rescaling make of
// it. So sums never meet two scales, no scale travels, and the moduli are chosen
// so that no S_l is further than 2^-17 from 2^38. Taking a ciphertext to a lower
// level multiplies it by one integer before the last rescaling.
//
// # What the caller must keep
//
// One seed serves one thing; a common seed serves one key part, or one refresh.
// A party makes one refresh part, one opening part or one share part of a
// ciphertext and never two. Masks and flooding are drawn from the seed and the
// ciphertext together, so a seed used twice does not repeat a mask for another
// ciphertext.
package ckks
