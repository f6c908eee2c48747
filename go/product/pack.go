package product

import (
	"encoding/binary"

	"atoll/core/fault"
)

// Residues travel as 52 bits each, two in thirteen bytes.

// packedSize is the number of bytes of `count` residues.
func packedSize(count int) int { return (count*modulusBits + 7) / 8 }

func pack(out []byte, residues []uint64) {
	pairs := len(residues) / 2
	for p := range pairs {
		x, y := residues[2*p], residues[2*p+1]
		place := out[13*p : 13*p+13]
		binary.LittleEndian.PutUint64(place, x|y<<52)
		binary.LittleEndian.PutUint32(place[8:], uint32(y>>12))
		place[12] = byte(y >> 44)
	}
	if len(residues)%2 == 1 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], residues[len(residues)-1])
		copy(out[13*pairs:], last[:7])
	}
}

// unpack reads residues modulo q and refuses any that is not below it.
func unpack(residues []uint64, data []byte, q uint64) error {
	const mask = 1<<modulusBits - 1
	var beyond uint64
	pairs := len(residues) / 2
	for p := range pairs {
		place := data[13*p : 13*p+13]
		first := binary.LittleEndian.Uint64(place)
		x := first & mask
		y := first>>52 | uint64(binary.LittleEndian.Uint32(place[8:]))<<12 | uint64(place[12])<<44
		beyond |= (q - 1 - x) | (q - 1 - y)
		residues[2*p], residues[2*p+1] = x, y
	}
	if len(residues)%2 == 1 {
		var last [8]byte
		copy(last[:7], data[13*pairs:])
		x := binary.LittleEndian.Uint64(last[:])
		beyond |= q - 1 - x
		residues[len(residues)-1] = x
	}
	if beyond>>63 != 0 {
		return fault.New(fault.Message, "a residue is not below its modulus")
	}
	return nil
}

// residuesSize is the number of bytes of `count` values, limb by limb.
func (r *Ring) residuesSize(count int) int { return r.Limbs * packedSize(count) }

func (r *Ring) packResidues(out []byte, values []uint64, count int) {
	size := packedSize(count)
	for l := range r.Moduli {
		pack(out[l*size:(l+1)*size], values[l*count:(l+1)*count])
	}
}

func (r *Ring) unpackResidues(values []uint64, data []byte, count int) error {
	size := packedSize(count)
	for l, q := range r.Moduli {
		if err := unpack(values[l*count:(l+1)*count], data[l*size:(l+1)*size], q); err != nil {
			return err
		}
	}
	return nil
}

// PolySize is the number of bytes of one polynomial.
func (r *Ring) PolySize() int { return r.residuesSize(r.N) }

func (r *Ring) checkSize(data []byte, size int, what string) error {
	if len(data) != size {
		return fault.New(fault.Message, "%s has %d bytes, not %d", what, len(data), size)
	}
	return nil
}
