package ckks

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"unsafe"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"atoll/core/fault"
	"atoll/core/sample"
)

// What a stream is for; with the caller's domain and an index it makes every
// stream of one seed different.
const (
	forSecret    = "secret key"
	forCommon    = "common polynomial"
	forKeyError  = "error of a key part"
	forEphemeral = "ephemeral key"
	forEncrypt   = "encryption"
	forZero      = "encryption of zero"
	forMask      = "mask"
	forShare     = "mask of a share"
	forRecrypt   = "error of a refreshed ciphertext"
	forFlooding  = "flooding"
	forVeil      = "veil"
	forSwitching = "switching"
)

func newStream(seed []byte, purpose string, domain []byte, index int) *sample.Stream {
	return sample.NewStream("atoll/ckks/v1", seed, purpose, domain, index)
}

func checkSeed(seeds ...[]byte) error {
	for _, seed := range seeds {
		if len(seed) != SeedBytes {
			return fault.New(fault.Argument, "a seed has %d bytes", SeedBytes)
		}
	}
	return nil
}

// domain tells what a stream is drawn for: the set, a few numbers, and what the
// result goes with.
func (m *Machine) domain(numbers []int, parts ...[]byte) []byte {
	digest := sha256.New()
	add := func(value int) { digest.Write(binary.LittleEndian.AppendUint64(nil, uint64(value))) }
	add(int(m.ID))
	add(len(numbers))
	for _, value := range numbers {
		add(value)
	}
	for _, part := range parts {
		add(len(part))
		digest.Write(part)
	}
	return digest.Sum(nil)
}

// hashWords writes a row of residues into a hash.
func hashWords(digest hash.Hash, row []uint64) {
	digest.Write(unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 8*len(row)))
}

// uniformRow draws residues below q by rejection from masked words.
func uniformRow(s *sample.Stream, row []uint64, q, mask uint64) {
	s.Fill(row)
	for i, word := range row {
		for word &= mask; word >= q; word = s.Word() & mask {
		}
		row[i] = word
	}
}

// uniform draws a polynomial modulo Q P, or modulo Q alone if p has no P.
func (m *Machine) uniform(s *sample.Stream, p ringqp.Poly) {
	for i, sub := range m.params.RingQ().SubRings[:p.Q.Level()+1] {
		uniformRow(s, p.Q.Coeffs[i], sub.Modulus, sub.Mask)
	}
	if p.P.Level() >= 0 {
		sub := m.params.RingP().SubRings[0]
		uniformRow(s, p.P.Coeffs[0], sub.Modulus, sub.Mask)
	}
}

// small draws a polynomial of small coefficients, one word each, and transforms it.
func (m *Machine) small(s *sample.Stream, draw func(uint64) int64, p ringqp.Poly) {
	first := p.Q.Coeffs[0]
	s.Fill(first)
	rows, subs := p.Q.Coeffs[1:], m.params.RingQ().SubRings[1:p.Q.Level()+1]
	if p.P.Level() >= 0 {
		rows = append(append([][]uint64{}, rows...), p.P.Coeffs[0])
		subs = append(append([]*ring.SubRing{}, subs...), m.params.RingP().SubRings[0])
	}
	q := m.params.RingQ().SubRings[0].Modulus
	for i, word := range first {
		value := draw(word)
		first[i] = sample.Residue(value, q)
		for k, row := range rows {
			row[i] = sample.Residue(value, subs[k].Modulus)
		}
	}
	m.transform(p)
}

// transform takes a polynomial to the NTT domain.
func (m *Machine) transform(p ringqp.Poly) {
	m.ring(p.Q.Level()).NTT(p.Q, p.Q)
	if p.P.Level() >= 0 {
		m.params.RingP().NTT(p.P, p.P)
	}
}

// centred draws an integer uniform in [-2^(width-1), 2^(width-1)).
func centred(s *sample.Stream, width int) wide {
	x := wide{low: s.Word(), high: s.Word()}
	if width <= 64 {
		x.high = 0
		x.low &= ^uint64(0) >> (64 - width)
		return x.add(wide{low: 1 << (width - 1)}.negated())
	}
	x.high &= ^uint64(0) >> (128 - width)
	return x.add(wide{high: 1 << (width - 65)}.negated())
}
