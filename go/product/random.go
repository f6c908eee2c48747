package product

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"atoll/core/fault"
	"atoll/core/sample"
)

// SeedBytes is the length of every seed.
const SeedBytes = 32

// What a stream is for; with the caller's domain and an index it makes every
// stream of one seed different.
const (
	forSecret   = "secret key"
	forCommon   = "common polynomial"
	forError    = "encryption error"
	forZero     = "encryption of zero"
	forMask     = "mask"
	forSmudging = "smudging"

	forFingerprint = "fingerprint"
)

// stream is AES-256 in counter mode under a key used for nothing else.
type stream struct {
	mode  cipher.Stream
	chunk [4096]byte
	next  int
}

func newStream(seed []byte, purpose string, domain []byte, index int) *stream {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte("atoll/product/v1"), seed, []byte(purpose), domain} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write(part)
	}
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(index))
	hash.Write(number[:])
	block, err := aes.NewCipher(hash.Sum(nil))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	var start [aes.BlockSize]byte
	s := &stream{mode: cipher.NewCTR(block, start[:])}
	s.next = len(s.chunk)
	return s
}

func (s *stream) refill() {
	clear(s.chunk[:])
	s.mode.XORKeyStream(s.chunk[:], s.chunk[:])
	s.next = 0
}

func (s *stream) word() uint64 {
	if s.next == len(s.chunk) {
		s.refill()
	}
	value := binary.LittleEndian.Uint64(s.chunk[s.next:])
	s.next += 8
	return value
}

// fill writes the next words of the stream, as word does, many at a time.
func (s *stream) fill(words []uint64) {
	for ; s.next < len(s.chunk) && len(words) > 0; words = words[1:] {
		words[0] = s.word()
	}
	if len(words) == 0 {
		return
	}
	clear(words)
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	s.mode.XORKeyStream(data, data)
	if bigEndian {
		for i, word := range words {
			words[i] = bits.ReverseBytes64(word)
		}
	}
}

var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

func checkSeed(seed []byte) error {
	if len(seed) != SeedBytes {
		return fault.New(fault.Argument, "a seed has %d bytes", SeedBytes)
	}
	return nil
}

// uniform fills a polynomial with residues uniform modulo each modulus.
func (r *Ring) uniform(poly []uint64, s *stream) {
	for l, q := range r.Moduli {
		part := r.limb(poly, l)
		s.fill(part)
		for i, word := range part {
			value := word >> (64 - modulusBits)
			for value >= q {
				value = s.word() >> (64 - modulusBits)
			}
			part[i] = value
		}
	}
}

// errorDeviation is the standard deviation of small errors: a centred binomial
// of 42 coins, which is sub-Gaussian with exactly its own variance 21/2.
const errorDeviation = 3.2404

// smallError draws one error in [-21, 21] in constant time.
func smallError(s *stream) int64 { return sample.Binomial(s.word()) }

// addErrors adds a small error to every coefficient (not transformed).
func (r *Ring) addErrors(poly []uint64, s *stream) {
	for i := range r.N {
		value := smallError(s)
		for l, q := range r.Moduli {
			place := l*r.N + i
			poly[place] = addMod(poly[place], sample.Residue(value, q), q)
		}
	}
}

// ternary fills a polynomial with uniform coefficients in {-1, 0, 1}, in constant time.
func (r *Ring) ternary(poly []uint64, s *stream) {
	first := r.limb(poly, 0)
	s.fill(first)
	for i, word := range first {
		value := sample.Ternary(word)
		for l, q := range r.Moduli {
			poly[l*r.N+i] = sample.Residue(value, q)
		}
	}
}

// centred fills x with an integer uniform in [-2^(width-1), 2^(width-1)).
func centred(x []uint64, width int, s *stream) {
	clear(x)
	words := (width + 63) / 64
	for k := range words {
		x[k] = s.word()
	}
	if extra := 64*words - width; extra > 0 {
		x[words-1] &= ^uint64(0) >> extra
	}
	var half [maxWords + 2]uint64
	half[(width-1)/64] = 1 << ((width - 1) % 64)
	subtract(x, half[:len(x)])
}
