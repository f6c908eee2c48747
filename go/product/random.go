package product

import (
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
	forFirst    = "first half of an encryption of zero"
	forMask     = "mask"
	forSmudging = "smudging"

	forFingerprint = "fingerprint"
)

type stream = sample.Stream

func newStream(seed []byte, purpose string, domain []byte, index int) *stream {
	return sample.NewStream("atoll/product/v1", seed, purpose, domain, index)
}

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
		s.Fill(part)
		if sample.Uppers(part, q) {
			continue
		}
		for i := range part {
			for part[i] >= q {
				part[i] = s.Word() >> (64 - modulusBits)
			}
		}
	}
}

// errorDeviation is the standard deviation of small errors: a centred binomial
// of 42 coins, which is sub-Gaussian with exactly its own variance 21/2.
const errorDeviation = 3.2404

// smallError draws one error in [-21, 21] in constant time.
func smallError(s *stream) int64 { return sample.Binomial(s.Word()) }

// errors fills a polynomial with small errors (not transformed).
func (r *Ring) errors(poly []uint64, s *stream) {
	s.Fill(r.limb(poly, 0))
	sample.Binomials(poly, r.Moduli)
}

// ternary fills a polynomial with uniform coefficients in {-1, 0, 1}, in constant time.
func (r *Ring) ternary(poly []uint64, s *stream) {
	s.Fill(r.limb(poly, 0))
	sample.Ternaries(poly, r.Moduli)
}

// centred fills x with an integer uniform in [-2^(width-1), 2^(width-1)).
func centred(x []uint64, width int, s *stream) {
	clear(x)
	words := (width + 63) / 64
	for k := range words {
		x[k] = s.Word()
	}
	if extra := 64*words - width; extra > 0 {
		x[words-1] &= ^uint64(0) >> extra
	}
	var half [maxWords + 2]uint64
	half[(width-1)/64] = 1 << ((width - 1) % 64)
	subtract(x, half[:len(x)])
}
