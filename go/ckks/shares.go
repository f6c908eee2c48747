package ckks

import (
	"encoding/binary"
	"math/big"
	"sync"

	"github.com/tuneinsight/lattigo/v6/ring"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/bignum"

	"atoll/core/fault"
)

// Values leave a ciphertext as integers, one party's for each slot, whose sum is
// the slot in units of 2^-ScaleBits (one unit a party is lost to rounding); and
// integers that add up to values come back. They are two's complement numbers of
// ShareWords words.
const ShareWords = 2

// sharePrecision is that of the transform between coefficients and slots: masks
// have 112 bits, in slots up to 121, and what is lost must stay below a unit.
const sharePrecision = 192

var (
	wideEncoders     = map[uint8]*lattigo.Encoder{}
	wideEncoderMutex sync.Mutex
)

// wideEncoder transforms with sharePrecision; its roots take a while, so it is made when first used.
func (m *Machine) wideEncoder() *lattigo.Encoder {
	wideEncoderMutex.Lock()
	defer wideEncoderMutex.Unlock()
	if wideEncoders[m.ID] == nil {
		wideEncoders[m.ID] = lattigo.NewEncoder(m.params, sharePrecision)
	}
	return wideEncoders[m.ID]
}

// toSlots writes what coefficients of a level hold in slots, in units of 2^-ScaleBits.
func (m *Machine) toSlots(out []byte, coefficients []wide, level int) error {
	slots := make([]*bignum.Complex, m.Slots())
	unit := new(big.Float).SetPrec(sharePrecision).Quo(&m.scales[m.top].Value, &m.scales[level].Value)
	float := func(x wide) *big.Float {
		value := new(big.Float).SetPrec(sharePrecision).SetInt(x.bigInt())
		return value.Mul(value, unit)
	}
	for i := range slots {
		slots[i] = &bignum.Complex{float(coefficients[i]), float(coefficients[i+m.Slots()])}
	}
	if err := m.wideEncoder().FFT(slots, m.LogN-1); err != nil {
		return err
	}
	for i, slot := range slots {
		value := wideOf(slot[0])
		binary.LittleEndian.PutUint64(out[16*i:], value.low)
		binary.LittleEndian.PutUint64(out[16*i+8:], value.high)
	}
	return nil
}

// wideOf rounds.
func wideOf(x *big.Float) wide {
	half := big.NewFloat(0.5)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	whole, _ := new(big.Float).SetPrec(sharePrecision).Add(x, half).Int(nil)
	magnitude := new(big.Int).Abs(whole)
	value := wide{low: new(big.Int).And(magnitude, new(big.Int).SetUint64(^uint64(0))).Uint64()}
	value.high = new(big.Int).Rsh(magnitude, 64).Uint64()
	if whole.Sign() < 0 {
		return value.negated()
	}
	return value
}

func (m *Machine) checkShares(shares []byte) error {
	if len(shares) != 8*ShareWords*m.Slots() {
		return fault.New(fault.Argument, "%d shares have %d bytes, not %d", m.Slots(), 8*ShareWords*m.Slots(), len(shares))
	}
	return nil
}

// SharePart writes this party's part of turning a ciphertext into shares, and this
// party's share: minus its mask. For one ciphertext, with one seed only.
func (k *Secret) SharePart(out, shares []byte, x *Ciphertext, seed []byte) error {
	m := k.m
	h := header{kind: KindShare, set: m.ID, level: x.Level()}
	if err := firstError(k.mine(x), checkSeed(seed), m.checkShares(shares), h.room(m, out)); err != nil {
		return err
	}
	p := k.decryption(x.ct.Value[1], m.RefreshLevel)
	s := newStream(seed, forShare, m.domain([]int{x.Level()}, x.mark()), 0)
	masks := make([]wide, m.n)
	defer clear(masks)
	for i := range masks {
		mask := centred(s, m.MaskBits)
		m.addWide(p, i, mask)
		masks[i] = mask.negated()
	}
	if err := m.toSlots(shares, masks, x.Level()); err != nil {
		return err
	}
	return h.write(m, out, p.Coeffs)
}

// PublicShare writes the share that everybody may know: the masked values.
func PublicShare(shares []byte, x *Ciphertext, total []byte, parties int) error {
	m := x.m
	if err := m.checkShares(shares); err != nil {
		return err
	}
	h, rows, err := m.read(total, KindShare)
	if err != nil {
		return err
	}
	if h.level != x.Level() {
		return fault.New(fault.Message, "a part for level %d does not go with a ciphertext at level %d", h.level, x.Level())
	}
	masked, err := m.masked(x, ring.Poly{Coeffs: rows}, parties)
	if err != nil {
		return err
	}
	return m.toSlots(shares, masked, h.level)
}

// InputPart writes this party's part of an encryption of values of which it holds
// shares; its second half is common.
func (k *Secret) InputPart(out, shares, common, seed []byte) error {
	m := k.m
	h := header{kind: KindInput, set: m.ID, level: m.top}
	if err := firstError(m.checkShares(shares), checkSeed(common, seed), h.room(m, out)); err != nil {
		return err
	}
	p, err := m.fromSlots(shares)
	if err != nil {
		return err
	}
	k.recrypt(p, m.commonOf(common, KindInput), newStream(seed, forRecrypt, m.domain([]int{int(KindInput)}, common, shares), 0))
	return h.write(m, out, p.Coeffs)
}

// fromSlots encodes integers in units of 2^-ScaleBits.
func (m *Machine) fromSlots(shares []byte) (ring.Poly, error) {
	slots := make([]*bignum.Complex, m.Slots())
	for i := range slots {
		value := wide{low: binary.LittleEndian.Uint64(shares[16*i:]), high: binary.LittleEndian.Uint64(shares[16*i+8:])}
		slots[i] = &bignum.Complex{
			new(big.Float).SetPrec(sharePrecision).SetInt(value.bigInt()), new(big.Float).SetPrec(sharePrecision),
		}
	}
	if err := m.wideEncoder().IFFT(slots, m.LogN-1); err != nil {
		return ring.Poly{}, err
	}
	p := m.ring(m.top).NewPoly()
	for i, slot := range slots {
		m.addWide(p, i, wideOf(slot[0]))
		m.addWide(p, i+m.Slots(), wideOf(slot[1]))
	}
	m.ring(m.top).NTT(p, p)
	return p, nil
}

// FromInputs is the ciphertext of the sum of all shares, at the highest level.
func FromInputs(m *Machine, total, common []byte) (*Ciphertext, error) {
	if err := checkSeed(common); err != nil {
		return nil, err
	}
	_, rows, err := m.read(total, KindInput)
	if err != nil {
		return nil, err
	}
	ct := m.newCiphertext(1, m.top)
	ct.Value[0].Coeffs = rows
	ct.Value[1] = m.commonOf(common, KindInput)
	return m.finished(ct), nil
}
