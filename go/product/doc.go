// Package product multiplies an encrypted matrix by matrices that the parties
// know, and hands the result on, noise-free, as additive shares.
//
// The secret key is a sum of the parties' keys, one each; nothing can be read
// without the last of them. Matrices are exact integers. One round is
//
//	Multiply     every party: ciphertext times its own matrix, re-randomised
//	ProductSum   the coordinator adds them up and returns the second halves
//	Refresh      every party: decryption share under a mask wider than the value;
//	             minus the mask, truncated, is its share of the result
//	Clear        the coordinator adds up: the masked value, truncated, is its share
//	Encrypt      everybody's shares, encrypted for the next product
//
// Only the coefficients that carry a result travel in the first halves and in
// the masked shares; the others hold sums that nobody may see.
//
// Nothing here draws randomness: every secret, mask and error is expanded from a
// seed that the caller drew, kept and uses for one step only.
package product
