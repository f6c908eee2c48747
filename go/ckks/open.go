package ckks

import (
	"math"

	"github.com/tuneinsight/lattigo/v6/ring"

	"atoll/core/fault"
	"atoll/core/sample"
)

// MaxFlooding is the widest flooding of an opening, in bits.
const MaxFlooding = 64

var errTooWide = fault.New(fault.Range, "a value is wider than it can be: a part is wrong or missing, or a number too large")

func checkFlooding(width int) error {
	if width < 1 || width > MaxFlooding {
		return fault.New(fault.Argument, "flooding of %d bits is not between 1 and %d", width, MaxFlooding)
	}
	return nil
}

// flooded is s c1 and flooding uniform on so many bits, as coefficients: what is
// opened shows the values and hides how they came about as far as the flooding is
// wider than the noise. It costs as much precision.
func (k *Secret) flooded(x *Ciphertext, s *sample.Stream, width int) ring.Poly {
	p := k.decryption(x.ct.Value[1], openLevel(x.Level()))
	for i := range k.m.n {
		k.m.addWide(p, i, centred(s, width))
	}
	return p
}

// OpeningPart writes this party's part of an opening, with flooding of its own.
// All slots open: what is not meant to be seen is weighted with zero before.
func (k *Secret) OpeningPart(out []byte, x *Ciphertext, seed []byte, flooding int) error {
	m := k.m
	h := header{kind: KindOpening, set: m.ID, level: x.Level(), step: flooding}
	if err := firstError(k.mine(x), checkSeed(seed), checkFlooding(flooding), h.room(m, out)); err != nil {
		return err
	}
	s := newStream(seed, forFlooding, m.domain([]int{x.Level(), flooding}, x.mark()), 0)
	return h.write(m, out, k.flooded(x, s, flooding).Coeffs)
}

// Opened is what a ciphertext holds, from the total of all parties' opening parts.
func Opened(x *Ciphertext, total []byte, values []float64) error {
	m := x.m
	h, rows, err := m.read(total, KindOpening)
	if err != nil {
		return err
	}
	if h.level != x.Level() {
		return fault.New(fault.Message, "an opening part for level %d does not go with a ciphertext at level %d", h.level, x.Level())
	}
	return m.decode(x.ct.Value[0], ring.Poly{Coeffs: rows}, h.level, h.step, values)
}

// decode reads the slots of a first half plus what decrypts it (coefficients),
// of a ciphertext of that level opened with flooding of so many bits.
func (m *Machine) decode(first, parts ring.Poly, level, flooding int, values []float64) error {
	if len(values) > m.Slots() {
		return fault.New(fault.Argument, "there are %d slots, not %d", m.Slots(), len(values))
	}
	limit := times(wide{low: 1 << (flooding - 1)}, uint64(m.MaxParties))
	limit = limit.add(wide{low: 1 << (m.ScaleBits + m.MagnitudeBits)})
	coefficients, err := m.opened(first, parts, limit)
	if err != nil {
		return err
	}
	slots, scale := make([]complex128, m.Slots()), m.scales[level].Float64()
	defer clear(slots)
	for i := range slots {
		slots[i] = complex(coefficients[i].float()/scale, coefficients[i+m.Slots()].float()/scale)
	}
	if err := m.encoder.FFT(slots, m.LogN-1); err != nil {
		return err
	}
	most := math.Exp2(float64(m.MagnitudeBits)) + float64(m.n*m.MaxParties)*math.Exp2(float64(flooding-1))/scale
	for i := range values {
		values[i] = real(slots[i])
		if math.Abs(values[i]) > most {
			return errTooWide
		}
	}
	return nil
}

// Receiver is whom ciphertexts are handed to: its public part, read once.
type Receiver struct {
	keys *Keys
	mark []byte
}

// NewReceiver reads a public part, with the common seed that it was made for.
func NewReceiver(m *Machine, common, public []byte) (*Receiver, error) {
	keys, err := NewKeys(m, common, KeyTotals{Public: public})
	if err != nil {
		return nil, err
	}
	return &Receiver{keys: keys, mark: m.domain(nil, common, public)}, nil
}

// SwitchingPart writes this party's part of switching a ciphertext to a receiver's key.
func (k *Secret) SwitchingPart(out []byte, x *Ciphertext, receiver *Receiver, seed []byte, flooding int) error {
	m := k.m
	h := header{kind: KindSwitching, set: m.ID, level: x.Level(), step: flooding}
	if err := firstError(k.mine(x), checkSeed(seed), checkFlooding(flooding), h.room(m, out)); err != nil {
		return err
	}
	level := openLevel(x.Level())
	domain := m.domain([]int{x.Level(), flooding}, x.mark(), receiver.mark)
	halves := []ring.Poly{k.flooded(x, newStream(seed, forFlooding, domain, 0), flooding), m.ring(level).NewPoly()}
	m.ring(level).NTT(halves[0], halves[0])
	if err := receiver.keys.zero(newStream(seed, forSwitching, domain, 0), halves); err != nil {
		return err
	}
	return h.write(m, out, append(append([][]uint64{}, halves[0].Coeffs...), halves[1].Coeffs...))
}

// Switched is the ciphertext for the receiver: of level 1 at the most, as it travels.
func Switched(out []byte, x *Ciphertext, total []byte) error {
	m := x.m
	h, rows, err := m.read(total, KindSwitching)
	if err != nil {
		return err
	}
	if h.level != x.Level() {
		return fault.New(fault.Message, "a switching part for level %d does not go with a ciphertext at level %d", h.level, x.Level())
	}
	level := openLevel(h.level)
	first := ring.Poly{Coeffs: rows[:level+1]}
	m.ring(level).Add(first, lower(x.ct.Value[0], level), first)
	h.kind = KindSwitched
	return h.write(m, out, rows)
}

// ReadSwitched decrypts what was switched to this secret's public part.
func (k *Secret) ReadSwitched(message []byte, values []float64) error {
	m := k.m
	h, rows, err := m.read(message, KindSwitched)
	if err != nil {
		return err
	}
	level := openLevel(h.level)
	first, second := ring.Poly{Coeffs: rows[:level+1]}, ring.Poly{Coeffs: rows[level+1:]}
	return m.decode(first, k.decryption(second, level), h.level, h.step, values)
}
