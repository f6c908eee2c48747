package product

import (
	"atoll/core/fault"
	"atoll/core/vector"
)

// residuesSize is the number of bytes of `count` values, limb by limb.
func (p Parameters) residuesSize(count int) int { return len(p.Moduli) * vector.PackedSize(count) }

func (r *Ring) packResidues(out []byte, values []uint64, count int) {
	size := vector.PackedSize(count)
	for l, m := range r.arithmetic {
		m.Pack(out[l*size:(l+1)*size], values[l*count:(l+1)*count])
	}
}

// unpackResidues reads what packResidues wrote, and refuses a residue that is not below its modulus.
func (r *Ring) unpackResidues(values []uint64, data []byte, count int) error {
	size := vector.PackedSize(count)
	for l, m := range r.arithmetic {
		if !m.Unpack(values[l*count:(l+1)*count], data[l*size:(l+1)*size]) {
			return errLarge()
		}
	}
	return nil
}

// unpackAdd is unpackResidues and addInto in one.
func (r *Ring) unpackAdd(values []uint64, data []byte, count int) error {
	size := vector.PackedSize(count)
	for l, m := range r.arithmetic {
		if !m.UnpackAdd(values[l*count:(l+1)*count], data[l*size:(l+1)*size]) {
			return errLarge()
		}
	}
	return nil
}

func errLarge() error { return fault.New(fault.Message, "a residue is not below its modulus") }

// PolySize is the number of bytes of one polynomial.
func (p Parameters) PolySize() int { return p.residuesSize(p.Degree()) }

func (r *Ring) checkSize(data []byte, size int, what string) error {
	if len(data) != size {
		return fault.New(fault.Message, "%s has %d bytes, not %d", what, len(data), size)
	}
	return nil
}
