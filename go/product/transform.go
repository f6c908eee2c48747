package product

import "github.com/tuneinsight/lattigo/v6/ring"

// twiddles are the roots of one modulus for the vectorised transform: in base
// 2^52 for the steps that work on eight residues at once, and Lattigo's own, in
// base 2^64, for the last three. Order and results are those of Lattigo's.
type twiddles struct {
	sub               *ring.SubRing
	q, inverse        uint64
	forward, backward []uint64
	shrink            uint64 // 1/N
}

const lanes = 8

func newTwiddles(sub *ring.SubRing, barrett [2]uint64) *twiddles {
	q := sub.Modulus
	t := &twiddles{sub: sub, q: q, inverse: 1}
	for range 6 { // Newton: each step doubles the digits that are right
		t.inverse *= 2 - q*t.inverse
	}
	t.inverse &= 1<<modulusBits - 1
	base := reduce128(0, 1<<modulusBits, q, barrett)
	convert := func(root uint64) uint64 {
		return mulMod(ring.IMForm(root, q, sub.MRedConstant), base, q, barrett)
	}
	for i := range sub.RootsForward {
		t.forward = append(t.forward, convert(sub.RootsForward[i]))
		t.backward = append(t.backward, convert(sub.RootsBackward[i]))
	}
	t.shrink = convert(sub.NInv)
	return t
}

func (t *twiddles) ntt(p []uint64) {
	if !hasIFMA {
		t.sub.NTT(p, p)
		return
	}
	n := len(p)
	for groups, half := 1, n/2; half >= lanes; groups, half = 2*groups, half/2 {
		for i := range groups {
			x := 2 * i * half
			forwardIFMA(&p[x], &p[x+half], half, t.forward[groups+i], t.q, t.inverse)
		}
	}
	for half := lanes / 2; half >= 1; half /= 2 {
		t.forwardScalar(p, half)
	}
}

func (t *twiddles) intt(p []uint64) {
	if !hasIFMA {
		t.sub.INTT(p, p)
		return
	}
	n := len(p)
	for half := 1; half < lanes; half *= 2 {
		t.backwardScalar(p, half)
	}
	for groups, half := n/2/lanes, lanes; half < n; groups, half = groups/2, 2*half {
		for i := range groups {
			x := 2 * i * half
			backwardIFMA(&p[x], &p[x+half], half, t.backward[groups+i], t.q, t.inverse)
		}
	}
	scaleIFMA(&p[0], n, t.shrink, t.q, t.inverse)
}

func (t *twiddles) forwardScalar(p []uint64, half int) {
	q, constant := t.q, t.sub.MRedConstant
	roots := t.sub.RootsForward[len(p)/2/half:]
	for i, x := 0, 0; x < len(p); i, x = i+1, x+2*half {
		w := roots[i]
		left, right := p[x:x+half], p[x+half:x+2*half]
		for k := range left {
			u, v := left[k], ring.MRed(right[k], w, q, constant)
			left[k], right[k] = addMod(u, v, q), subMod(u, v, q)
		}
	}
}

func (t *twiddles) backwardScalar(p []uint64, half int) {
	q, constant := t.q, t.sub.MRedConstant
	roots := t.sub.RootsBackward[len(p)/2/half:]
	for i, x := 0, 0; x < len(p); i, x = i+1, x+2*half {
		w := roots[i]
		left, right := p[x:x+half], p[x+half:x+2*half]
		for k := range left {
			u, v := left[k], right[k]
			left[k], right[k] = addMod(u, v, q), ring.MRed(subMod(u, v, q), w, q, constant)
		}
	}
}
