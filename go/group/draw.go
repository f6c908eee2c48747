package group

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"encoding/binary"

	"filippo.io/edwards25519"

	"atoll/core/fault"
)

// SeedSize is how many bytes a seed has.
const SeedSize = 32

// stream is AES-256 in counter mode under a key for one seed and purpose.
func stream(seed []byte, purpose string) (cipher.Stream, error) {
	if len(seed) != SeedSize {
		return nil, fault.New(fault.Argument, "a seed of %d bytes is not one of %d", len(seed), SeedSize)
	}
	hash := sha512.New()
	hash.Write([]byte("atoll/group/v1/" + purpose + "/"))
	hash.Write(seed)
	block, err := aes.NewCipher(hash.Sum(nil)[:32])
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize)), nil
}

// drawScalars gives uniform scalars.
func drawScalars(seed []byte, purpose string, count int) ([]*edwards25519.Scalar, error) {
	source, err := stream(seed, purpose)
	if err != nil {
		return nil, err
	}
	drawn := make([]*edwards25519.Scalar, count)
	for i := range drawn {
		var wide [64]byte
		source.XORKeyStream(wide[:], wide[:])
		if drawn[i], err = new(edwards25519.Scalar).SetUniformBytes(wide[:]); err != nil {
			return nil, err
		}
	}
	return drawn, nil
}

// shuffle fills order with a uniform permutation (Fisher and Yates).
func shuffle(source cipher.Stream, order []int) {
	for i := range order {
		order[i] = i
	}
	for i := len(order) - 1; i > 0; i-- {
		j := below(source, uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
}

// below gives a uniform number less than bound; words that would favour small
// numbers are drawn again.
func below(source cipher.Stream, bound uint64) int {
	limit := -bound % bound // 2^64 mod bound
	for {
		var word [8]byte
		source.XORKeyStream(word[:], word[:])
		if drawn := binary.LittleEndian.Uint64(word[:]); drawn >= limit {
			return int(drawn % bound)
		}
	}
}

func hashToScalar(parts ...[]byte) (*edwards25519.Scalar, error) {
	hash := sha512.New()
	hash.Write([]byte("atoll/group/v1/challenge/"))
	for _, part := range parts {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write(part)
	}
	return new(edwards25519.Scalar).SetUniformBytes(hash.Sum(nil))
}
