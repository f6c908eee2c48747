package ckks

import (
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"atoll/core/fault"
	"atoll/core/parallel"
	"atoll/core/sample"
)

// Secret is one party's part of the secret key.
type Secret struct {
	m *Machine
	s ringqp.Poly // NTT domain, Montgomery form
}

// String keeps the key out of logs.
func (k *Secret) String() string { return "ckks.Secret(" + k.m.Name + ")" }

// GoString keeps the key out of %#v as well.
func (k *Secret) GoString() string { return k.String() }

// NewSecret expands a party's part of the secret key from its seed: ternary.
func NewSecret(m *Machine, seed []byte) (*Secret, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	k := &Secret{m: m, s: m.params.RingQP().NewPoly()}
	m.small(newStream(seed, forSecret, m.domain(nil), 0), sample.Ternary, k.s)
	m.montgomery(k.s)
	return k, nil
}

// Free wipes the key; it must not be used afterwards.
func (k *Secret) Free() { wipe(k.s) }

// Machine is the set that the key belongs to.
func (k *Secret) Machine() *Machine { return k.m }

func wipe(p ringqp.Poly) {
	p.Q.Zero()
	p.P.Zero()
}

func (m *Machine) montgomery(p ringqp.Poly) { m.params.RingQP().MForm(p, p) }

// common is the polynomial that all parties draw alike for one row of a key.
func (m *Machine) common(seed []byte, kind Kind, step, row int) ringqp.Poly {
	p := m.params.RingQP().NewPoly()
	m.uniform(newStream(seed, forCommon, m.domain([]int{int(kind), step}), row), p)
	return p
}

// keyError draws the error of one row of a key part; half tells the two of a row apart.
func (m *Machine) keyError(seed, common []byte, kind Kind, step, half, row int) ringqp.Poly {
	p := m.params.RingQP().NewPoly()
	m.small(newStream(seed, forKeyError, m.domain([]int{int(kind), step, half}, common), row), sample.Binomial, p)
	return p
}

// addSpecial adds P s modulo the row's modulus alone: the gadget of key switching.
func (k *Secret) addSpecial(p ringqp.Poly, row int) {
	sub := k.m.params.RingQ().SubRings[row]
	product := make([]uint64, k.m.n)
	defer clear(product)
	sub.MulScalarMontgomery(k.s.Q.Coeffs[row], k.m.Special%sub.Modulus, product)
	sub.Add(p.Q.Coeffs[row], product, p.Q.Coeffs[row])
}

func rowsOf(polys ...ringqp.Poly) [][]uint64 {
	var rows [][]uint64
	for _, p := range polys {
		rows = append(rows, p.Q.Coeffs...)
		if p.P.Level() >= 0 {
			rows = append(rows, p.P.Coeffs...)
		}
	}
	return rows
}

// polysOf is the inverse of rowsOf for polynomials modulo Q P.
func (m *Machine) polysOf(rows [][]uint64) []ringqp.Poly {
	width := m.top + 2
	list := make([]ringqp.Poly, len(rows)/width)
	for i := range list {
		part := rows[i*width : (i+1)*width]
		list[i] = ringqp.Poly{Q: ring.Poly{Coeffs: part[:width-1]}, P: ring.Poly{Coeffs: part[width-1:]}}
	}
	return list
}

// KeyPart writes this party's part of a key: of the public key, of the
// relinearisation key's first or (given the total of the first) second round, or
// of the key that rotates by a power of two.
func (k *Secret) KeyPart(out []byte, kind Kind, step int, common, seed, round1 []byte) error {
	m := k.m
	h := header{kind: kind, set: m.ID, level: m.top, step: step}
	if err := checkSeed(common, seed); err != nil {
		return err
	}
	if err := h.room(m, out); err != nil {
		return err
	}
	var polys []ringqp.Poly
	var err error
	switch kind {
	case KindPublic:
		p := m.keyError(seed, common, kind, 0, 0, 0)
		m.params.RingQP().MulCoeffsMontgomeryThenSub(m.common(common, kind, 0, 0), k.s, p)
		polys = []ringqp.Poly{p}
	case KindRelinearisation1:
		polys, err = k.relinearisation1(common, seed)
	case KindRelinearisation2:
		polys, err = k.relinearisation2(common, seed, round1)
	case KindRotation:
		polys, err = k.rotation(step, common, seed)
	default:
		return fault.New(fault.Argument, "a %v is not a part of a key", kind)
	}
	if err != nil {
		return err
	}
	return h.write(m, out, rowsOf(polys...))
}

// ephemeral is the key u of both rounds of one relinearisation key.
func (k *Secret) ephemeral(common, seed []byte) ringqp.Poly {
	m := k.m
	u := m.params.RingQP().NewPoly()
	m.small(newStream(seed, forEphemeral, m.domain(nil, common), 0), sample.Ternary, u)
	m.montgomery(u)
	return u
}

// relinearisation1 is, for every row, (-u a + P s + e, s a + e').
func (k *Secret) relinearisation1(common, seed []byte) ([]ringqp.Poly, error) {
	m, ringQP := k.m, k.m.params.RingQP()
	u := k.ephemeral(common, seed)
	defer wipe(u)
	polys := make([]ringqp.Poly, 2*(m.top+1))
	err := parallel.Run(m.top+1, func(_, row int) error {
		a := m.common(common, KindRelinearisation1, 0, row)
		first := m.keyError(seed, common, KindRelinearisation1, 0, 0, row)
		ringQP.MulCoeffsMontgomeryThenSub(a, u, first)
		k.addSpecial(first, row)
		second := m.keyError(seed, common, KindRelinearisation1, 0, 1, row)
		ringQP.MulCoeffsMontgomeryThenAdd(a, k.s, second)
		polys[2*row], polys[2*row+1] = first, second
		return nil
	})
	return polys, err
}

// relinearisation2 is, for every row, s r0 + (u - s) r1 + e, with the totals r of the first round.
func (k *Secret) relinearisation2(common, seed, round1 []byte) ([]ringqp.Poly, error) {
	m, ringQP := k.m, k.m.params.RingQP()
	_, rows, err := m.read(round1, KindRelinearisation1)
	if err != nil {
		return nil, err
	}
	totals := m.polysOf(rows)
	difference := k.ephemeral(common, seed)
	defer wipe(difference)
	ringQP.Sub(difference, k.s, difference)
	polys := make([]ringqp.Poly, m.top+1)
	err = parallel.Run(m.top+1, func(_, row int) error {
		p := m.keyError(seed, common, KindRelinearisation2, 0, 0, row)
		ringQP.MulCoeffsMontgomeryThenAdd(totals[2*row], k.s, p)
		ringQP.MulCoeffsMontgomeryThenAdd(totals[2*row+1], difference, p)
		polys[row] = p
		return nil
	})
	return polys, err
}

// rotation is, for every row, -a s' + P s + e, where s' rotated is s.
func (k *Secret) rotation(step int, common, seed []byte) ([]ringqp.Poly, error) {
	m, ringQP := k.m, k.m.params.RingQP()
	root := m.params.RingQ().NthRoot()
	back := ring.ModExp(m.params.GaloisElement(step), root-1, root)
	turned := ringQP.NewPoly()
	defer wipe(turned)
	ringQP.AutomorphismNTT(k.s, back, turned)
	polys := make([]ringqp.Poly, m.top+1)
	err := parallel.Run(m.top+1, func(_, row int) error {
		p := m.keyError(seed, common, KindRotation, step, 0, row)
		ringQP.MulCoeffsMontgomeryThenSub(m.common(common, KindRotation, step, row), turned, p)
		k.addSpecial(p, row)
		polys[row] = p
		return nil
	})
	return polys, err
}
