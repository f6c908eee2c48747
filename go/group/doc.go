// Package group is the prime-order group Ristretto255 (RFC 9496), ElGamal
// encryption in it, as the mixing secure sum needs it, and what private set
// intersection needs: ids as elements, multiplied by several parties' secrets.
//
// Points and scalars are those of filippo.io/edwards25519, whose arithmetic
// takes the same time whatever the secrets are; this package adds Ristretto's
// encoding, which leaves no cofactor to think about: there is one encoding of
// each element, and what is not such an encoding is refused.
//
//	element.go   elements and their encoding
//	embed.go     sixteen bytes as an element, and back (Lizard)
//	draw.go      scalars and permutations from a seed
//	elgamal.go   keys, proofs of possession, wrapping, stripping, reading
//	intersect.go ids as elements, under one secret after another
package group
