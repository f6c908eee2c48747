package vector

// Parted is a Modulus that transforms one part of a short polynomial without the others. A polynomial of which only
// the first `Size` coefficients are not zero falls into parts of that size, each of which comes from the same
// coefficients: so one part of all right blocks can be made and used while the same part of the left ones is in
// the cache.
type Parted interface {
	Modulus
	// Small is a coefficient, below 2^51 in magnitude, as the words of AddParts hold it, whatever the modulus.
	Small(value int64) uint64
	// AddParts transforms this part of `inner` polynomials (Size words of Small each, zero from Used on, `step` apart) and adds
	// their products with the same part of the left blocks x and y, `left` apart, Rows times `inner` of them.
	AddParts(s *PartSums, small []uint64, step int, x, y []uint64, left, inner int)
	// ReduceParts writes the residues of one row's sums.
	ReduceParts(first, second []uint64, s *PartSums, row int)
}

// Parts are at most so large, or they would not stay in the cache; smaller ones than the least are not worth a call.
const (
	PartMin = 256
	PartMax = 2048
)

// PartSums holds the sums of one part for several rows of blocks.
type PartSums struct {
	Size, Used, Part, Rows int
	sums, work             []uint64
	count                  int
}

// NewPartSums makes room for parts of `size` points, a power of two from 32 to PartMax, of polynomials that have
// so many `used` coefficients, the first ones.
func NewPartSums(size, used, rows int) *PartSums {
	return &PartSums{Size: size, Used: used, Rows: rows, sums: make([]uint64, 4*size*rows), work: make([]uint64, 4*size)}
}

// Start empties the sums, for another part.
func (s *PartSums) Start(part int) {
	s.Part, s.count = part, 0
	clear(s.sums)
}

// Packed is a Modulus that adds up products with residues as they travel, without writing them down in between.
type Packed interface {
	Modulus
	// PackedInner writes the sums of products of `count` packed residues, at most PackedMost, with the numbers of y and
	// with those of z, below 2^52, as two words each, the lower one first. It returns false if a residue is not one.
	PackedInner(sums *[4]uint64, data []byte, count int, y, z []uint64) bool
}

// PackedMost is how many residues PackedInner takes at a time.
const PackedMost = 1 << 12
