package ckks

import (
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"atoll/core/fault"
	"atoll/core/sample"
)

// A refresh decrypts under masks and encrypts again: every party sends s c1 + M
// modulo few moduli, where the sum opens to the value plus all masks, and
// -s a - M' + e modulo all of them, where a is common and M' is what is real of M. The masks are 2^64 times
// wider than what they hide, so the masked value tells less than 2^-64 a
// coefficient of it, and of the noise, which depends on keys.

// What comes back has real numbers in its slots. Noise is complex, the square of
// a number with an imaginary part is too small, and that of one which is mostly
// imaginary is negative: rows that are hardly longer than the noise would have
// no length. Masks of the first half hide both parts; the second takes of them
// what the first will be opened for.

// realPart is one coefficient of the mean of a polynomial and its conjugate,
// which has -p_(n-i) at i.
func realPart(p []wide, i int) wide {
	if i == 0 {
		return p[0]
	}
	return p[i].add(p[len(p)-i].negated()).half()
}

// decryption is s c1 modulo the moduli of a level, as coefficients;
// for secret eyes only before something wide is added.
func (k *Secret) decryption(second ring.Poly, level int) ring.Poly {
	r := k.m.ring(level)
	p := r.NewPoly()
	r.MulCoeffsMontgomery(lower(second, level), lower(k.s.Q, level), p)
	r.INTT(p, p)
	return p
}

func (k *Secret) mine(x *Ciphertext) error {
	if x.m != k.m {
		return fault.New(fault.Argument, "a ciphertext of the set %q does not go with a key of %q", x.m.Name, k.m.Name)
	}
	return nil
}

// addWide adds an integer to one coefficient.
func (m *Machine) addWide(p ring.Poly, i int, value wide) {
	for l, row := range p.Coeffs {
		q := m.Moduli[l]
		sum := row[i] + value.residue(q)
		if sum >= q {
			sum -= q
		}
		row[i] = sum
	}
}

// again is the ratio of scales that a refresh from a level makes good.
func (m *Machine) again(level int) ratio {
	return newRatio(&m.scales[m.top].Value, &m.scales[level].Value)
}

// RefreshPart writes this party's part of a refresh: for one ciphertext, with one
// seed and one common seed only.
func (k *Secret) RefreshPart(out []byte, x *Ciphertext, common, seed []byte) error {
	m := k.m
	h := header{kind: KindRefresh, set: m.ID, level: x.Level()}
	if err := firstError(k.mine(x), checkSeed(common, seed), h.room(m, out)); err != nil {
		return err
	}
	first := k.decryption(x.ct.Value[1], m.RefreshLevel)
	second := m.ring(m.top).NewPoly()
	domain := m.domain([]int{x.Level()}, x.mark(), common)
	s, scale := newStream(seed, forMask, domain, 0), m.again(x.Level())
	masks := make([]wide, m.n)
	defer clear(masks)
	for i := range masks {
		masks[i] = centred(s, m.MaskBits)
		m.addWide(first, i, masks[i])
	}
	for i := range masks {
		m.addWide(second, i, scale.of(realPart(masks, i)).negated())
	}
	m.ring(m.top).NTT(second, second)
	k.recrypt(second, m.commonOf(common, KindRefresh), newStream(seed, forRecrypt, domain, 0))
	return h.write(m, out, append(append([][]uint64{}, first.Coeffs...), second.Coeffs...))
}

// recrypt adds -s a + e.
func (k *Secret) recrypt(p, a ring.Poly, s *sample.Stream) {
	r := k.m.ring(k.m.top)
	e := ringqp.Poly{Q: r.NewPoly()}
	k.m.small(s, sample.Binomial, e)
	r.Add(p, e.Q, p)
	r.MulCoeffsMontgomeryThenSub(a, k.s.Q, p)
	e.Q.Zero()
}

// commonOf is the second half of what comes out of a refresh or an encryption of shares.
func (m *Machine) commonOf(common []byte, kind Kind) ring.Poly {
	p := ringqp.Poly{Q: m.ring(m.top).NewPoly()}
	m.uniform(newStream(common, forCommon, m.domain([]int{int(kind)}), 0), p)
	return p.Q
}

// Refreshed is the vector at the highest level, from the total of all parties' parts.
func Refreshed(x *Ciphertext, total, common []byte, parties int) (*Ciphertext, error) {
	m := x.m
	if err := checkSeed(common); err != nil {
		return nil, err
	}
	h, rows, err := m.read(total, KindRefresh)
	if err != nil {
		return nil, err
	}
	if h.level != x.Level() {
		return nil, fault.New(fault.Message, "a refresh part for level %d does not go with a ciphertext at level %d", h.level, x.Level())
	}
	masked, err := m.masked(x, ring.Poly{Coeffs: rows[:m.RefreshLevel+1]}, parties)
	if err != nil {
		return nil, err
	}
	ct := m.newCiphertext(1, m.top)
	first, scale := ct.Value[0], m.again(x.Level())
	for i := range masked {
		m.addWide(first, i, scale.of(realPart(masked, i)))
	}
	m.ring(m.top).NTT(first, first)
	m.ring(m.top).Add(first, ring.Poly{Coeffs: rows[m.RefreshLevel+1:]}, first)
	ct.Value[1] = m.commonOf(common, KindRefresh)
	return m.finished(ct), nil
}

// masked opens the value plus all masks. One that masks cannot explain means that
// a key, a part or the bound on magnitudes was wrong.
func (m *Machine) masked(x *Ciphertext, parts ring.Poly, parties int) ([]wide, error) {
	if parties < 1 || parties > m.MaxParties {
		return nil, fault.New(fault.Argument, "%d parties: from 1 to %d are possible", parties, m.MaxParties)
	}
	limit := wide{high: uint64(parties) << (m.MaskBits - 1 - 64)}
	limit = limit.add(wide{low: 1 << (m.ScaleBits + m.MagnitudeBits)})
	return m.opened(x.ct.Value[0], parts, limit)
}

// opened adds a first half to all parties' parts (as coefficients), and checks
// that no coefficient is beyond the limit.
func (m *Machine) opened(first, parts ring.Poly, limit wide) ([]wide, error) {
	level := parts.Level()
	r := m.ring(level)
	sum := r.NewPoly()
	r.INTT(lower(first, level), sum)
	r.Add(sum, parts, sum)
	values := make([]wide, m.n)
	for i := range values {
		values[i] = m.lift(sum, i)
		magnitude := values[i].flipped(values[i].sign())
		if above := limit.add(magnitude.negated()); above.sign() != 0 {
			return nil, errTooWide
		}
	}
	return values, nil
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
