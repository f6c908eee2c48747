package ckks

import (
	"math"

	"github.com/tuneinsight/lattigo/v6/ring"

	"atoll/core/fault"
	"atoll/core/sample"
)

// MaxFlooding is the widest flooding of an opening, in bits.
const MaxFlooding = 64

// veilBits is how wide noise is in the slots of an opening that nobody reads. In
// coefficients that is about 2^52 at N = 2^14, where the noise of a rescaling is
// 2^6; and little enough for a double's digits not to disturb the other slots.
const veilBits = 60

// veilLevel is the lowest level with moduli for that.
const veilLevel = 1

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
//
// That noise is the key times what the last rescaling cut off, which everybody
// knows who has the ciphertext: each number that is opened is an equation for the
// key. So flooding must be as wide as there are many of them, and a veil covers
// all other numbers.
func (k *Secret) flooded(x *Ciphertext, s *sample.Stream, width int) ring.Poly {
	p := k.decryption(x.ct.Value[1], openLevel(x.Level()))
	for i := range k.m.n {
		k.m.addWide(p, i, centred(s, width))
	}
	return p
}

// veil adds wide noise to all numbers but the real parts of the first slots.
func (m *Machine) veil(p ring.Poly, s *sample.Stream, kept int) error {
	slots := make([]complex128, m.Slots())
	defer clear(slots)
	noise := func() float64 { return float64(int64(s.Word()) >> (64 - veilBits)) }
	for i := range slots {
		slots[i] = complex(0, noise())
		if i >= kept {
			slots[i] += complex(noise(), 0)
		}
	}
	if err := m.encoder.IFFT(slots, m.LogN-1); err != nil {
		return err
	}
	for i, slot := range slots {
		m.addWide(p, i, wideInt(int64(math.Round(real(slot)))))
		m.addWide(p, i+m.Slots(), wideInt(int64(math.Round(imag(slot)))))
	}
	return nil
}

// checkOpening: a part opens some of the slots, at a level that has room for a veil.
func (k *Secret) checkOpening(x *Ciphertext, flooding, kept int) error {
	if kept < 1 || kept > k.m.Slots() {
		return fault.New(fault.Argument, "%d of %d slots cannot be opened", kept, k.m.Slots())
	}
	if x.Level() < veilLevel {
		return fault.New(fault.Argument, "a ciphertext at level %d cannot be opened", x.Level())
	}
	return firstError(k.mine(x), checkFlooding(flooding))
}

// OpeningPart writes this party's part of an opening of the first slots, with
// flooding of its own. The others are weighted with zero before: what stands there
// is hidden by noise, but that is only 2^11 times wider than a value may be.
func (k *Secret) OpeningPart(out []byte, x *Ciphertext, seed []byte, flooding, kept int) error {
	m := k.m
	h := header{kind: KindOpening, set: m.ID, level: x.Level(), step: flooding}
	if err := firstError(k.checkOpening(x, flooding, kept), checkSeed(seed), h.room(m, out)); err != nil {
		return err
	}
	domain := m.domain([]int{x.Level(), flooding}, x.mark())
	p := k.flooded(x, newStream(seed, forFlooding, domain, 0), flooding)
	if err := m.veil(p, newStream(seed, forVeil, domain, kept), kept); err != nil {
		return err
	}
	return h.write(m, out, p.Coeffs)
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
	limit = limit.add(times(wide{low: 1 << veilBits}, uint64(m.MaxParties)))
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

// SwitchingPart writes this party's part of switching a ciphertext to a receiver's
// key, of which the receiver reads the first slots.
func (k *Secret) SwitchingPart(out []byte, x *Ciphertext, receiver *Receiver, seed []byte, flooding, kept int) error {
	m := k.m
	h := header{kind: KindSwitching, set: m.ID, level: x.Level(), step: flooding}
	if err := firstError(k.checkOpening(x, flooding, kept), checkSeed(seed), h.room(m, out)); err != nil {
		return err
	}
	level := openLevel(x.Level())
	domain := m.domain([]int{x.Level(), flooding}, x.mark(), receiver.mark)
	halves := []ring.Poly{k.flooded(x, newStream(seed, forFlooding, domain, 0), flooding), m.ring(level).NewPoly()}
	if err := m.veil(halves[0], newStream(seed, forVeil, domain, kept), kept); err != nil {
		return err
	}
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
