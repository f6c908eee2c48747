// Package additive encrypts vectors of 192-bit integers so that sums of
// ciphertexts decrypt to the exact sums modulo 2^192.
//
// # The scheme
//
// Plain RLWE with the value in the coefficient: of all that homomorphic
// encryption offers, a sum needs addition only, so there are no slots, no
// relinearisation and no multiplication depth, and the plaintext modulus may be
// the power of two that the fixed-point grid wraps at anyway. One coefficient
// carries one whole value:
//
//	c1   = a·u + e1
//	c0_j = b_j·u + e_j + m_j·Q/2^192        b_j = -a·s_j + e'_j,  j < width
//
// BFV and BGV at the same security need a prime plaintext modulus for their
// slots; 192-bit values would be split by the Chinese remainder theorem into
// four or more ciphertexts.
//
// # Three things that make it small and quick
//
// One c1 serves `width` polynomials, each under its own secret s_j (the packing
// of Peikert, Vaikuntanathan and Waters): a ciphertext costs 1 + 1/width
// polynomials for one of values, not two. The secrets are independent and the
// samples (a, c1), (b_j, c0_j) are ordinary RLWE samples under u.
//
// Ciphertexts travel as fractions of Q rounded to a power of two: x becomes
// round(x·2^w/Q). Adding two of them is adding w-bit integers, all w-bit
// integers are valid, and the value m_j sits in the top 192 bits, so it is
// added to an encryption of zero as it is.
//
// Only coefficients that carry a value travel, for c0 and for decryption shares.
//
// # Randomness
//
// Nothing here asks the operating system: every randomised function expands a
// 32-byte seed from its caller, so it is a function of its arguments and can be
// pinned by known answers. Encryption binds the seed to the values, and a
// decryption share's smudging is derived from the secret and c1 alone: a party
// cannot make two different shares for one ciphertext, however often it is run.
package additive
