package product

import "github.com/tuneinsight/lattigo/v6/ring"

// twiddles are the roots of one modulus for the vectorised transform, times 2^52.
// Order and results are those of Lattigo's transform, which is used where the
// processor has no such vectors.
type twiddles struct {
	sub               *ring.SubRing
	q, inverse        uint64
	forward, backward []uint64
	// For the steps within sixteen residues: three vectors of roots for each.
	forwardTail, backwardTail []uint64
	shrink                    uint64 // 1/N
	lift                      uint64 // 2^104, which brings a factor to base 2^52
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
	t.forwardTail, t.backwardTail = tail(t.forward), tail(t.backward)
	t.shrink = convert(sub.NInv)
	t.lift = mulMod(base, base, q, barrett)
	return t
}

// tail arranges the roots of the three steps within sixteen residues lane by lane.
func tail(roots []uint64) []uint64 {
	n := len(roots)
	var out []uint64
	for pair := range n / (2 * lanes) {
		for _, half := range []int{4, 2, 1} {
			for lane := range lanes {
				out = append(out, roots[(n+2*lanes*pair)/(2*half)+lane/half])
			}
		}
	}
	return out
}

func (t *twiddles) ntt(p []uint64) { t.nttStart(p, len(p)) }

// nttStart transforms a polynomial with zeros from coefficient `used` on: while
// the upper halves are zero, a step only copies the lower ones.
func (t *twiddles) nttStart(p []uint64, used int) {
	if !hasIFMA {
		t.sub.NTT(p, p)
		return
	}
	n := len(p)
	groups, half := 1, n/2
	for half >= lanes && half >= used {
		groups, half = 2*groups, half/2
	}
	for copied := n / groups; copied < n; copied *= 2 {
		copy(p[copied:2*copied], p[:copied])
	}
	for ; half >= lanes; groups, half = 2*groups, half/2 {
		for i := range groups {
			x := 2 * i * half
			forwardIFMA(&p[x], &p[x+half], half, t.forward[groups+i], t.q, t.inverse)
		}
	}
	forwardTailIFMA(&p[0], n/(2*lanes), &t.forwardTail[0], t.q, t.inverse)
}

func (t *twiddles) intt(p []uint64) {
	if !hasIFMA {
		t.sub.INTT(p, p)
		return
	}
	n := len(p)
	backwardTailIFMA(&p[0], n/(2*lanes), &t.backwardTail[0], t.q, t.inverse)
	for groups, half := n/2/lanes, lanes; half < n; groups, half = groups/2, 2*half {
		for i := range groups {
			x := 2 * i * half
			backwardIFMA(&p[x], &p[x+half], half, t.backward[groups+i], t.q, t.inverse)
		}
	}
	scaleIFMA(&p[0], n, t.shrink, t.q, t.inverse)
}
