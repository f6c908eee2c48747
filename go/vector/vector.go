package vector

import (
	"strings"

	"github.com/tuneinsight/lattigo/v6/ring"
	"golang.org/x/sys/cpu"

	"atoll/core/fault"
)

// Variable is the environment variable that forces a path.
const Variable = "ATOLL_VECTOR"

// Bits is the width of every modulus; residues travel packed to it.
const Bits = 52

// MaxBlocks bounds the products in one sum, on every path: so many fit it on the narrowest.
const MaxBlocks = 1 << 12

// Tile is how many points are added up at a time, so that the sums stay in the
// first-level cache.
const Tile = 512

// Sums holds two sums of products which share one factor, for Tile points; each path has its own
// way. The zero value is empty.
type Sums struct {
	words [4 * Tile]uint64
	count int
}

// Modulus is the arithmetic modulo one prime, on one path. Polynomials are words in the caller's memory: residues
// below the prime, "factors" for the multiplications, or "operands" for sums of products. Only residues mean the
// same on all paths; every method gives the same ones on all of them.
type Modulus interface {
	// Forward and Backward transform residues in place, in Lattigo's order.
	Forward(p []uint64)
	Backward(p []uint64)
	// Factor turns transformed residues into a factor, in place.
	Factor(p []uint64)
	// Multiply, MultiplyAdd and MultiplySub take residues x and a factor y: out = x y, sum += x y, sum -= x y.
	Multiply(out, x, y []uint64)
	MultiplyAdd(sum, x, y []uint64)
	MultiplySub(sum, x, y []uint64)
	// Add adds residues y to x.
	Add(x, y []uint64)
	// Operand turns transformed residues into an operand, in place.
	Operand(p []uint64)
	// ForwardOperand transforms residues, taken for zero from `used` on whatever is there, and makes an operand of them.
	ForwardOperand(p []uint64, used int)
	// Accumulate adds to the two sums the products of `count` blocks of x, and of y, with those of b;
	// left and right are the distances from one block to the next. MaxBlocks bounds the total.
	Accumulate(s *Sums, x, y, b []uint64, count, left, right int)
	// Reduce writes the residues of both sums, which are used up.
	Reduce(first, second []uint64, s *Sums)
	// Pack writes residues as 52 bits each, two in thirteen bytes; PackedSize is the room it needs.
	Pack(out []byte, residues []uint64)
	// Unpack reads them, UnpackAdd adds them to what is there; false if one is not below the modulus.
	Unpack(residues []uint64, data []byte) bool
	UnpackAdd(residues []uint64, data []byte) bool
}

// PackedSize is the number of bytes of `count` residues.
func PackedSize(count int) int { return (count*Bits + 7) / 8 }

// Path is one way to compute, and what it needs.
type Path struct {
	Name  string
	Needs string
	// Here tells whether this processor, and this build, have it.
	Here bool
	New  func(sub *ring.SubRing) Modulus
}

// Paths lists all of them, the fastest first; the last one is everywhere.
var Paths = []Path{
	{Name: "ifma", Needs: "AVX-512 with IFMA and VBMI", Here: integersHere, New: newIntegers},
	{Name: "avx2", Needs: "AVX2 and FMA", Here: doublesBuilt && cpu.X86.HasAVX2 && cpu.X86.HasFMA, New: newDoubles},
	{Name: "neon", Needs: "a 64-bit ARM processor", Here: doublesBuilt && cpu.ARM64.HasASIMD, New: newDoubles},
	{Name: "scalar", Needs: "nothing", Here: true, New: newScalar},
}

// Here names the paths that can be taken, the fastest first.
func Here() []string {
	var names []string
	for _, path := range Paths {
		if path.Here {
			names = append(names, path.Name)
		}
	}
	return names
}

// Choose gives the path of that name; "auto", or nothing, is the fastest one.
func Choose(name string) (Path, error) {
	for _, path := range Paths {
		switch {
		case path.Name == name && !path.Here:
			return Path{}, fault.New(fault.Argument, "%s is %q, which needs %s; this machine has: %s",
				Variable, name, path.Needs, strings.Join(Here(), ", "))
		case path.Name == name, path.Here && (name == "auto" || name == ""):
			return path, nil
		}
	}
	return Path{}, fault.New(fault.Argument, "%s is %q, not one of: auto, scalar, avx2, ifma, neon", Variable, name)
}

// Chosen is the path that the environment asks for.
func Chosen() (Path, error) { return Choose(environment()) }

// mustBeJustBelow panics for a modulus for which the vector kernels are not exact.
func mustBeJustBelow(q uint64) {
	if q >= 1<<Bits || q <= 1<<Bits-1<<22 {
		panic("vector: the kernels are exact for primes just below 2^52 only")
	}
}
