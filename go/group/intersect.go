package group

import (
	"filippo.io/edwards25519"
	"github.com/bwesterb/go-ristretto"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// HashSize is how many bytes stand for one id: a hash of it, made by the caller.
const HashSize = 32

// secretOf is the secret of one party of an intersection.
func secretOf(seed []byte) (*edwards25519.Scalar, error) {
	drawn, err := drawScalars(seed, "intersection", 1)
	if err != nil {
		return nil, err
	}
	return drawn[0], nil
}

// Blind maps every hash to an element (RFC 9496, 4.3.4, of its SHA-512) and
// multiplies it by the secret: k H(x).
func Blind(seed, hashes, out []byte) error {
	count := len(hashes) / HashSize
	if len(hashes)%HashSize != 0 || len(out) != count*ElementSize {
		return fault.New(fault.Argument, "hashes and elements do not fit each other")
	}
	secret, err := secretOf(seed)
	if err != nil {
		return err
	}
	return parallel.Run(count, func(_, i int) error {
		var mapped ristretto.Point
		mapped.DeriveDalek(hashes[i*HashSize : (i+1)*HashSize])
		point, err := decodeKey(mapped.Bytes())
		if err != nil {
			return err
		}
		encode(out[i*ElementSize:(i+1)*ElementSize], point.ScalarMult(secret, point))
		return nil
	})
}

// Raise multiplies every element by the secret. What is no element, or the
// identity, is refused.
func Raise(seed, elements, out []byte) error {
	count := len(elements) / ElementSize
	if len(elements)%ElementSize != 0 || len(out) != len(elements) {
		return fault.New(fault.Argument, "a list of %d bytes does not hold whole elements", len(elements))
	}
	secret, err := secretOf(seed)
	if err != nil {
		return err
	}
	return parallel.Run(count, func(_, i int) error {
		at := elements[i*ElementSize : (i+1)*ElementSize]
		point, err := decodeKey(at)
		if err != nil {
			return err
		}
		encode(out[i*ElementSize:(i+1)*ElementSize], point.ScalarMult(secret, point))
		return nil
	})
}
