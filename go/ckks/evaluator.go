package ckks

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// Keys is what computes: the public key, the relinearisation key and the rotation
// keys, of which any may be missing.
type Keys struct {
	m      *Machine
	public []ringqp.Poly // b = -a s + e and a; NTT domain, Montgomery form
	relin  bool
	eval   *lattigo.Evaluator
}

// KeyTotals are the totals of all parties' parts; what is missing is empty.
type KeyTotals struct {
	Public, Relinearisation1, Relinearisation2 []byte
	Rotations                                  [][]byte
}

// NewKeys makes keys of the totals and of the common seed that the parts were made for.
func NewKeys(m *Machine, common []byte, totals KeyTotals) (*Keys, error) {
	if err := checkSeed(common); err != nil {
		return nil, err
	}
	k := &Keys{m: m}
	if len(totals.Public) > 0 {
		_, rows, err := m.read(totals.Public, KindPublic)
		if err != nil {
			return nil, err
		}
		k.public = []ringqp.Poly{m.polysOf(rows)[0], m.common(common, KindPublic, 0, 0)}
		m.montgomery(k.public[0])
		m.montgomery(k.public[1])
	}
	set := rlwe.NewMemEvaluationKeySet(nil)
	if len(totals.Relinearisation1) > 0 || len(totals.Relinearisation2) > 0 {
		key, err := m.relinearisationKey(totals)
		if err != nil {
			return nil, err
		}
		set.RelinearizationKey, k.relin = key, true
	}
	for _, total := range totals.Rotations {
		key, err := m.rotationKey(common, total)
		if err != nil {
			return nil, err
		}
		set.GaloisKeys[key.GaloisElement] = key
	}
	k.eval = lattigo.NewEvaluator(m.params, set)
	return k, nil
}

// Machine is the set that the keys belong to.
func (k *Keys) Machine() *Machine { return k.m }

// relinearisationKey is, for every row, (h0 + h1, r1): r1 = s a + e is its common polynomial.
func (m *Machine) relinearisationKey(totals KeyTotals) (*rlwe.RelinearizationKey, error) {
	_, first, err := m.read(totals.Relinearisation1, KindRelinearisation1)
	if err != nil {
		return nil, err
	}
	_, second, err := m.read(totals.Relinearisation2, KindRelinearisation2)
	if err != nil {
		return nil, err
	}
	r, h := m.polysOf(first), m.polysOf(second)
	key := &rlwe.RelinearizationKey{}
	key.Value, err = m.gadget(h, func(row int) ringqp.Poly { return r[2*row+1] })
	return key, err
}

func (m *Machine) rotationKey(common, total []byte) (*rlwe.GaloisKey, error) {
	h, rows, err := m.read(total, KindRotation)
	if err != nil {
		return nil, err
	}
	key := &rlwe.GaloisKey{GaloisElement: m.params.GaloisElement(h.step), NthRoot: m.params.RingQ().NthRoot()}
	key.Value, err = m.gadget(m.polysOf(rows), func(row int) ringqp.Poly {
		return m.common(common, KindRotation, h.step, row)
	})
	return key, err
}

// gadget is a key for switching, prepared: for every row what was added up, and what it goes with.
func (m *Machine) gadget(first []ringqp.Poly, second func(row int) ringqp.Poly) ([][]rlwe.VectorQP, error) {
	value := make([][]rlwe.VectorQP, len(first))
	err := parallel.Run(len(first), func(_, row int) error {
		other := second(row)
		m.montgomery(first[row])
		m.montgomery(other)
		value[row] = []rlwe.VectorQP{{first[row], other}}
		return nil
	})
	return value, err
}

// Ciphertext is an encrypted vector; nothing changes it once it is made.
type Ciphertext struct {
	m  *Machine
	ct *rlwe.Ciphertext
}

// Encoded is a vector in the clear, ready to be multiplied at one level.
type Encoded struct {
	m     *Machine
	plain *rlwe.Plaintext // in Montgomery form
}

// Free wipes the values: they may be a party's own.
func (e *Encoded) Free() { e.plain.Value.Zero() }

// Level is how often a ciphertext can still be rescaled.
func (x *Ciphertext) Level() int { return x.ct.Level() }

// Machine is the set that the ciphertext belongs to.
func (x *Ciphertext) Machine() *Machine { return x.m }

// finished gives a ciphertext the one scale of its level.
func (m *Machine) finished(ct *rlwe.Ciphertext) *Ciphertext {
	ct.Scale = m.scales[ct.Level()]
	return &Ciphertext{m: m, ct: ct}
}

func (m *Machine) newCiphertext(degree, level int) *rlwe.Ciphertext {
	ct := lattigo.NewCiphertext(m.params, degree, level)
	ct.Scale = m.scales[level]
	return ct
}

// ReadCiphertext checks a message.
func ReadCiphertext(m *Machine, message []byte) (*Ciphertext, error) {
	h, rows, err := m.read(message, KindCiphertext)
	if err != nil {
		return nil, err
	}
	ct := m.newCiphertext(1, h.level)
	for i := range ct.Value {
		ct.Value[i].Coeffs = rows[i*(h.level+1) : (i+1)*(h.level+1)]
	}
	return m.finished(ct), nil
}

// Write is the ciphertext as it travels.
func (x *Ciphertext) Write(out []byte) error {
	h := header{kind: KindCiphertext, set: x.m.ID, level: x.Level()}
	return h.write(x.m, out, append(append([][]uint64{}, x.ct.Value[0].Coeffs...), x.ct.Value[1].Coeffs...))
}

func (k *Keys) mine(list ...*Ciphertext) error {
	for _, x := range list {
		if x.m != k.m {
			return fault.New(fault.Argument, "a ciphertext of the set %q does not go with keys of %q", x.m.Name, k.m.Name)
		}
	}
	return nil
}

// Lowered is the same vector at a lower level: times the one integer that makes
// the scale that of the level, and rescaled once.
func (k *Keys) Lowered(x *Ciphertext, level int) (*Ciphertext, error) {
	if err := k.mine(x); err != nil {
		return nil, err
	}
	if level < 0 || level > x.Level() {
		return nil, fault.New(fault.Argument, "a ciphertext at level %d cannot be taken to level %d", x.Level(), level)
	}
	if level == x.Level() {
		return x, nil
	}
	return k.times1(x, 1, level)
}

// times1 multiplies by a number and ends at a lower level, with one rescaling.
func (k *Keys) times1(x *Ciphertext, number float64, level int) (*Ciphertext, error) {
	m, r := k.m, k.m.ring(level+1)
	factor, err := m.factor(number, x.Level(), level)
	if err != nil {
		return nil, err
	}
	product := m.newCiphertext(1, level+1)
	for i := range product.Value {
		r.MulScalarBigint(x.ct.Value[i], factor, product.Value[i])
	}
	return k.rescaled(product)
}

// rescaled divides by the highest modulus left.
func (k *Keys) rescaled(ct *rlwe.Ciphertext) (*Ciphertext, error) {
	if ct.Level() == 0 {
		return nil, fault.New(fault.Range, "no level is left for a product")
	}
	if err := k.eval.Rescale(ct, ct); err != nil {
		return nil, err
	}
	return k.m.finished(ct), nil
}

// aligned takes ciphertexts to the lowest level among them.
func (k *Keys) aligned(list ...*Ciphertext) ([]*Ciphertext, error) {
	if len(list) == 0 {
		return nil, fault.New(fault.Argument, "no ciphertexts were given")
	}
	level := k.m.top
	for _, x := range list {
		level = min(level, x.Level())
	}
	out, done := make([]*Ciphertext, len(list)), map[*Ciphertext]*Ciphertext{}
	for i, x := range list {
		if done[x] == nil {
			lowered, err := k.Lowered(x, level)
			if err != nil {
				return nil, err
			}
			done[x] = lowered
		}
		out[i] = done[x]
	}
	return out, nil
}

// Sum adds ciphertexts, at the lowest level among them.
func (k *Keys) Sum(list []*Ciphertext) (*Ciphertext, error) {
	same, err := k.aligned(list...)
	if err != nil {
		return nil, err
	}
	if len(same) == 1 {
		return same[0], nil
	}
	sum := k.m.newCiphertext(1, same[0].Level())
	if err := k.eval.Add(same[0].ct, same[1].ct, sum); err != nil {
		return nil, err
	}
	for _, x := range same[2:] {
		if err := k.eval.Add(sum, x.ct, sum); err != nil {
			return nil, err
		}
	}
	return k.m.finished(sum), nil
}

// Subtract is x - y, at the lower level of both.
func (k *Keys) Subtract(x, y *Ciphertext) (*Ciphertext, error) {
	same, err := k.aligned(x, y)
	if err != nil {
		return nil, err
	}
	out := k.m.newCiphertext(1, same[0].Level())
	if err := k.eval.Sub(same[0].ct, same[1].ct, out); err != nil {
		return nil, err
	}
	return k.m.finished(out), nil
}

// Encode prepares a vector in the clear for products with ciphertexts at a level.
func Encode(m *Machine, values []float64, level int) (*Encoded, error) {
	plain, err := m.encode(values, level)
	if err != nil {
		return nil, err
	}
	r := m.ring(level)
	r.MForm(plain.Value, plain.Value)
	return &Encoded{m: m, plain: plain}, nil
}

// Machine is the set that the vector was encoded for.
func (e *Encoded) Machine() *Machine { return e.m }

// Plus adds a vector in the clear.
func (k *Keys) Plus(x *Ciphertext, values []float64) (*Ciphertext, error) {
	if err := k.mine(x); err != nil {
		return nil, err
	}
	plain, err := k.m.encode(values, x.Level())
	if err != nil {
		return nil, err
	}
	out := x.ct.CopyNew()
	k.m.ring(x.Level()).Add(out.Value[0], plain.Value, out.Value[0])
	return k.m.finished(out), nil
}

// Scaled multiplies by one number: a whole one below 2^20 costs no level, any other costs one.
func (k *Keys) Scaled(x *Ciphertext, number float64) (*Ciphertext, error) {
	if err := k.mine(x); err != nil {
		return nil, err
	}
	if number == float64(int64(number)) && number > -(1<<20) && number < 1<<20 {
		out := k.m.newCiphertext(1, x.Level())
		if err := k.eval.Mul(x.ct, int64(number), out); err != nil {
			return nil, err
		}
		return k.m.finished(out), nil
	}
	if x.Level() == 0 {
		return nil, fault.New(fault.Range, "no level is left for a product")
	}
	return k.times1(x, number, x.Level()-1)
}

// Factor is the other side of a product: a ciphertext or an encoded vector.
type Factor struct {
	Secret *Ciphertext
	Clear  *Encoded
}

// Pair is two things to be multiplied slot by slot.
type Pair struct {
	Left  *Ciphertext
	Right Factor
}

// Inner is the sum of products. Relinearised and rescaled once, after adding up;
// or, not lazy, product by product.
func (k *Keys) Inner(pairs []Pair, lazy bool) (*Ciphertext, error) {
	same, err := k.alignedPairs(pairs)
	if err != nil {
		return nil, err
	}
	if lazy {
		return k.inner(same)
	}
	products := make([]*Ciphertext, len(same))
	for i := range same {
		if products[i], err = k.inner(same[i : i+1]); err != nil {
			return nil, err
		}
	}
	return k.Sum(products)
}

// inner takes pairs of one level.
func (k *Keys) inner(pairs []Pair) (*Ciphertext, error) {
	level, degree := pairs[0].Left.Level(), 1
	for _, p := range pairs {
		if p.Right.Secret != nil {
			degree = 2
		}
	}
	sum := lattigo.NewCiphertext(k.m.params, degree, level)
	sum.Scale = k.m.scales[level].Mul(k.m.scales[level])
	r := k.m.ring(level)
	for _, p := range pairs {
		if p.Right.Secret != nil {
			if err := k.eval.MulThenAdd(p.Left.ct, p.Right.Secret.ct, sum); err != nil {
				return nil, err
			}
			continue
		}
		for i, c := range p.Left.ct.Value {
			r.MulCoeffsMontgomeryThenAdd(c, p.Right.Clear.plain.Value, sum.Value[i])
		}
	}
	if degree == 2 {
		if err := k.eval.Relinearize(sum, sum); err != nil {
			return nil, err
		}
	}
	return k.rescaled(sum)
}

// alignedPairs takes all ciphertexts to the lowest level among them, at which
// vectors in the clear must be encoded.
func (k *Keys) alignedPairs(pairs []Pair) ([]Pair, error) {
	var list []*Ciphertext
	secret := false
	for _, p := range pairs {
		list = append(list, p.Left)
		if p.Right.Secret != nil {
			list, secret = append(list, p.Right.Secret), true
		}
	}
	if secret && !k.relin {
		return nil, fault.New(fault.Argument, "a product of ciphertexts needs the relinearisation key")
	}
	list, err := k.aligned(list...)
	if err != nil {
		return nil, err
	}
	level := list[0].Level()
	if level == 0 {
		return nil, fault.New(fault.Range, "no level is left for a product")
	}
	same := make([]Pair, len(pairs))
	for i, p := range pairs {
		same[i].Left, list = list[0], list[1:]
		if p.Right.Secret != nil {
			same[i].Right.Secret, list = list[0], list[1:]
			continue
		}
		clear := p.Right.Clear
		if clear.m != k.m || clear.plain.Level() != level {
			return nil, fault.New(fault.Argument, "a vector encoded for level %d does not go with ciphertexts at level %d",
				clear.plain.Level(), level)
		}
		same[i].Right.Clear = clear
	}
	return same, nil
}

// Rotated turns all slots to the left, by powers of two.
func (k *Keys) Rotated(x *Ciphertext, steps int) (*Ciphertext, error) {
	if err := k.mine(x); err != nil {
		return nil, err
	}
	slots := k.m.Slots()
	rest := uint(((steps % slots) + slots) % slots)
	if rest == 0 {
		return x, nil
	}
	ct := x.ct
	for ; rest > 0; rest &= rest - 1 {
		step := 1 << bits.TrailingZeros(rest)
		if _, err := k.eval.CheckAndGetGaloisKey(k.m.params.GaloisElement(step)); err != nil {
			return nil, fault.New(fault.Argument, "the key that rotates by %d is missing", step)
		}
		turned := k.m.newCiphertext(1, x.Level())
		if err := k.eval.Rotate(ct, step, turned); err != nil {
			return nil, err
		}
		ct = turned
	}
	return k.m.finished(ct), nil
}

// SortTotals tells totals of key parts apart by their headers.
func SortTotals(list [][]byte) (totals KeyTotals, err error) {
	for _, total := range list {
		h, err := peek(total)
		if err != nil {
			return totals, err
		}
		place := map[Kind]*[]byte{
			KindPublic: &totals.Public, KindRelinearisation1: &totals.Relinearisation1, KindRelinearisation2: &totals.Relinearisation2,
		}[h.kind]
		switch {
		case h.kind == KindRotation:
			totals.Rotations = append(totals.Rotations, total)
		case place == nil || *place != nil:
			return totals, fault.New(fault.Message, "a %v is not wanted, or was given twice", h.kind)
		default:
			*place = total
		}
	}
	return totals, nil
}
