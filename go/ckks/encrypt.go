package ckks

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"atoll/core/fault"
	"atoll/core/sample"
)

// clearBits bounds what a ciphertext may be multiplied by, and added to.
const clearBits = 20

// encode puts numbers into slots at the scale of the level; slots beyond hold zeros.
func (m *Machine) encode(values []float64, level int) (*rlwe.Plaintext, error) {
	if err := m.checkLevel(level); err != nil {
		return nil, err
	}
	if len(values) == 0 || len(values) > m.Slots() {
		return nil, fault.New(fault.Argument, "%d values do not fit %d slots", len(values), m.Slots())
	}
	// At the lowest level the modulus is only 2^(42-38) times the scale.
	limit := math.Min(math.Exp2(clearBits), m.room(level))
	for _, value := range values {
		if !(math.Abs(value) < limit) {
			return nil, fault.New(fault.Range, "a value is not below %g in magnitude, or not a number", limit)
		}
	}
	plain := lattigo.NewPlaintext(m.params, level)
	plain.Scale = m.scales[level]
	return plain, m.encoder.Encode(values, plain)
}

// room is what the modulus of a level leaves for values: a quarter of it, in units of the scale.
func (m *Machine) room(level int) float64 {
	room := 0.25 / math.Exp2(float64(m.ScaleBits))
	for _, q := range m.Moduli[:min(level, 2)+1] {
		room *= float64(q)
	}
	return room
}

// factor is the integer that, followed by one rescaling, multiplies by a number
// and takes the scale of one level to that of a lower one.
func (m *Machine) factor(number float64, from, to int) (*big.Int, error) {
	if !(math.Abs(number) < math.Exp2(clearBits)) {
		return nil, fault.New(fault.Range, "a factor is not below 2^%d in magnitude, or not a number", clearBits)
	}
	value := new(big.Float).SetPrec(256).SetFloat64(number)
	value.Mul(value, &m.scales[to].Value)
	value.Mul(value, new(big.Float).SetUint64(m.Moduli[to+1]))
	value.Quo(value, &m.scales[from].Value)
	value.Add(value, big.NewFloat(math.Copysign(0.5, number)))
	whole, _ := value.Int(nil)
	return whole, nil
}

// zero adds a public-key encryption of zero to both halves: (u b + e, u a + e')
// modulo Q P, divided by P, so that little noise is left.
func (k *Keys) zero(s *sample.Stream, halves []ring.Poly) error {
	if k.public == nil {
		return fault.New(fault.Argument, "the public key is missing")
	}
	m, level := k.m, halves[0].Level()
	ringQP := m.params.RingQP().AtLevel(level, 0)
	u, p := ringQP.NewPoly(), ringQP.NewPoly()
	defer wipe(u)
	defer wipe(p)
	m.small(s, sample.Ternary, u)
	for i := range halves {
		m.small(s, sample.Binomial, p)
		ringQP.MulCoeffsMontgomeryThenAdd(u, atLevel(k.public[i], level), p)
		m.extender.ModDownQPtoQNTT(level, 0, p.Q, p.P, p.Q)
		m.ring(level).Add(halves[i], p.Q, halves[i])
	}
	return nil
}

func atLevel(p ringqp.Poly, level int) ringqp.Poly {
	return ringqp.Poly{Q: lower(p.Q, level), P: p.P}
}

// lower is a polynomial modulo fewer moduli.
func lower(p ring.Poly, level int) ring.Poly { return ring.Poly{Coeffs: p.Coeffs[:level+1]} }

// Encrypt encrypts numbers, each vector under randomness of its own: the stream
// depends on the values, so that a seed used twice does not show a difference.
func (k *Keys) Encrypt(values []float64, level int, seed []byte, index int) (*Ciphertext, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	limit := math.Exp2(float64(k.m.MagnitudeBits))
	digest := sha256.New()
	for _, value := range values {
		if !(math.Abs(value) < limit) {
			return nil, fault.New(fault.Range, "a value to encrypt is not below %g in magnitude, or not a number", limit)
		}
		digest.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(value)))
	}
	plain, err := k.m.encode(values, level)
	if err != nil {
		return nil, err
	}
	defer plain.Value.Zero()
	ct := k.m.newCiphertext(1, level)
	ct.Value[0].CopyLvl(level, plain.Value)
	s := newStream(seed, forEncrypt, k.m.domain([]int{level}, digest.Sum(nil)), index)
	if err := k.zero(s, []ring.Poly{ct.Value[0], ct.Value[1]}); err != nil {
		return nil, err
	}
	return k.m.finished(ct), nil
}

// Rerandomised adds a fresh encryption of zero: what went into the ciphertext
// (a party's own numbers above all) does not show in it any more.
func (k *Keys) Rerandomised(x *Ciphertext, seed []byte, index int) (*Ciphertext, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	if err := k.mine(x); err != nil {
		return nil, err
	}
	out := x.ct.CopyNew()
	s := newStream(seed, forZero, k.m.domain([]int{x.Level()}, x.mark(), x.firstMark()), index)
	if err := k.zero(s, []ring.Poly{out.Value[0], out.Value[1]}); err != nil {
		return nil, err
	}
	return k.m.finished(out), nil
}

// mark tells ciphertexts apart by their second halves, which parts are made for;
// one row does: it has n residues of 42 bits.
func (x *Ciphertext) mark() []byte { return markOf(x.ct.Value[1].Coeffs[0]) }

func (x *Ciphertext) firstMark() []byte { return markOf(x.ct.Value[0].Coeffs[0]) }

func markOf(row []uint64) []byte {
	digest := sha256.New()
	hashWords(digest, row)
	return digest.Sum(nil)
}
