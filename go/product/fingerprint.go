package product

import (
	"sync"

	"atoll/core/fault"
	"atoll/core/fingerprint"
	"atoll/core/parallel"
	"atoll/core/vector"
)

// Points is how many fingerprints are taken of every message: one alone, modulo a
// prime of 52 bits, could be met by chance once in 2^40 tries.
const Points = 2

// chunk is how many residues share one row of coefficients; even, so that a chunk
// of packed residues begins at a whole byte.
const chunk = vector.PackedMost

// Fingerprint is a secret linear map of messages to a few residues: whoever does not
// know it cannot change a message, or a sum of messages, and keep its fingerprint.
// Residues are multiplied by random coefficients, chunk by chunk, and the chunks are
// added up by powers of a random number, all modulo each modulus.
type Fingerprint struct {
	coefficients [Points][chunk]uint64
	power        [Points]uint64
}

// String keeps the coefficients out of logs.
func (f *Fingerprint) String() string { return "product.Fingerprint" }

// GoString keeps them out of %#v as well.
func (f *Fingerprint) GoString() string { return f.String() }

// NewFingerprint expands the map from a seed.
func NewFingerprint(seed []byte) (*Fingerprint, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	f := &Fingerprint{}
	s := newStream(seed, forFingerprint, nil, 0)
	for p := range Points {
		s.Fill(f.coefficients[p][:])
		for i := range chunk {
			f.coefficients[p][i] >>= 64 - modulusBits
		}
		f.power[p] = s.Word() >> (64 - modulusBits)
	}
	return f, nil
}

// Of writes the fingerprints of a message of packed residues, `count` of them per
// limb: Points numbers modulo each modulus, in the order of the moduli.
func (f *Fingerprint) Of(out []uint64, r *Ring, data []byte, count int) error {
	if len(out) != Points*r.Limbs {
		return fault.New(fault.Argument, "a fingerprint has %d residues", Points*r.Limbs)
	}
	size := vector.PackedSize(count)
	block := r.Limbs * size
	if count < 1 || len(data) == 0 || len(data)%block != 0 {
		return fault.New(fault.Message, "a message has %d bytes, not a multiple of %d", len(data), block)
	}
	blocks := len(data) / block
	parts := make([]uint64, blocks*len(out))
	err := parallel.Run(blocks*r.Limbs, func(_, step int) error {
		b, l := step/r.Limbs, step%r.Limbs
		from := b*block + l*size
		return f.limb(parts[b*len(out)+l*Points:][:Points], r, l, data[from:from+size], count)
	})
	if err != nil {
		return err
	}
	f.join(out, parts, r, blocks, ceilDiv(count, chunk))
	return nil
}

// rooms hold a chunk of residues as it was sent, which is no secret.
var rooms = sync.Pool{New: func() any { return new([chunk]uint64) }}

// limb takes the fingerprints of one limb of one block.
func (f *Fingerprint) limb(out []uint64, r *Ring, l int, data []byte, count int) error {
	room := rooms.Get().(*[chunk]uint64)
	defer rooms.Put(room)
	q, constant := r.Moduli[l], r.barrett[l]
	var sums [Points]uint64
	for from := 0; from < count; from += chunk {
		// Of 2^12 products of 104 bits: no overflow.
		inner, fine := f.inner(room, r.arithmetic[l], data[from/2*13:], min(chunk, count-from))
		if !fine {
			return errLarge()
		}
		for p, sum := range inner {
			sums[p] = addMod(mulMod(sums[p], f.power[p], q, constant), reduce128(sum.High, sum.Low, q, constant), q)
		}
	}
	copy(out, sums[:])
	return nil
}

// inner gives the sums of products of one chunk with the coefficients, and whether all residues are below the modulus.
func (f *Fingerprint) inner(
	room *[chunk]uint64, m vector.Modulus, data []byte, count int,
) (fingerprint.Pair[fingerprint.Wide], bool) {
	data = data[:vector.PackedSize(count)]
	y, z := f.coefficients[0][:], f.coefficients[1][:]
	if packed, can := m.(vector.Packed); can {
		var sums [4]uint64
		fine := packed.PackedInner(&sums, data, count, y, z)
		return fingerprint.Pair[fingerprint.Wide]{{Low: sums[0], High: sums[1]}, {Low: sums[2], High: sums[3]}}, fine
	}
	part := room[:count]
	fine := m.Unpack(part, data)
	return fingerprint.Inner(part, y, z), fine
}

// join adds up the blocks, each some chunks further than the one before.
func (f *Fingerprint) join(out, parts []uint64, r *Ring, blocks, chunks int) {
	for l, q := range r.Moduli {
		constant := r.barrett[l]
		for p := range Points {
			step := uint64(1)
			for range chunks {
				step = mulMod(step, f.power[p], q, constant)
			}
			var sum uint64
			for b := range blocks {
				sum = addMod(mulMod(sum, step, q, constant), parts[b*len(out)+l*Points+p], q)
			}
			out[l*Points+p] = sum
		}
	}
}
