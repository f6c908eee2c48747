package group

import (
	"filippo.io/edwards25519"
	"github.com/bwesterb/go-ristretto"

	"atoll/core/fault"
)

// PieceSize is how many bytes one element carries. Lizard takes sixteen; the
// last four are zero, so that what does not come from embed is noticed.
const (
	PieceSize  = 12
	lizardSize = 16
)

// embed maps bytes to an element, one to one (Lizard: the hash of the bytes is
// woven into the input of the Elligator map, so that the right preimage is found).
func embed(piece []byte) (*edwards25519.Point, error) {
	var data [lizardSize]byte
	copy(data[:PieceSize], piece)
	var point ristretto.Point
	point.SetLizard(&data)
	return decode(point.Bytes())
}

// extract is the inverse of embed.
func extract(out []byte, point *edwards25519.Point) error {
	var encoded [ElementSize]byte
	encode(encoded[:], point)
	var there ristretto.Point
	var data [lizardSize]byte
	if !there.SetBytes(&encoded) || there.LizardInto(&data) != nil {
		return fault.New(fault.Message, "a group element holds no value")
	}
	for _, padding := range data[PieceSize:] {
		if padding != 0 {
			return fault.New(fault.Message, "a group element holds no value")
		}
	}
	copy(out, data[:PieceSize])
	return nil
}
