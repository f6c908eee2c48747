package product

import "atoll/core/vector"

// Arithmetic on single residues; on many at a time it is that of the ring's path.

func reduce128(high, low, q uint64, constant [2]uint64) uint64 {
	return vector.Reduce128(high, low, q, constant)
}

func mulMod(x, y, q uint64, constant [2]uint64) uint64 { return vector.MulMod(x, y, q, constant) }
func addMod(x, y, q uint64) uint64                     { return vector.AddMod(x, y, q) }
func subMod(x, y, q uint64) uint64                     { return vector.SubMod(x, y, q) }

// addInto adds y to x limb by limb modulo the moduli; both hold `count` values per limb.
func (r *Ring) addInto(x, y []uint64, count int) {
	for l, m := range r.arithmetic {
		m.Add(x[l*count:(l+1)*count], y[l*count:(l+1)*count])
	}
}

// prepare turns a transformed polynomial into a factor for the functions below.
func (r *Ring) prepare(poly []uint64) {
	for l, m := range r.arithmetic {
		m.Factor(r.limb(poly, l))
	}
}

// operand turns a transformed polynomial into one for sums of products.
func (r *Ring) operand(poly []uint64) {
	for l, m := range r.arithmetic {
		m.Operand(r.limb(poly, l))
	}
}

// mulAddInto adds x times the prepared factor y to sum (transformed polynomials).
func (r *Ring) mulAddInto(sum, x, y []uint64) {
	for l, m := range r.arithmetic {
		m.MultiplyAdd(r.limb(sum, l), r.limb(x, l), r.limb(y, l))
	}
}

// mulSubInto subtracts x times the prepared factor y from sum.
func (r *Ring) mulSubInto(sum, x, y []uint64) {
	for l, m := range r.arithmetic {
		m.MultiplySub(r.limb(sum, l), r.limb(x, l), r.limb(y, l))
	}
}

// mulInto sets out = x times the prepared factor y.
func (r *Ring) mulInto(out, x, y []uint64) {
	for l, m := range r.arithmetic {
		m.Multiply(r.limb(out, l), r.limb(x, l), r.limb(y, l))
	}
}

func (r *Ring) ntt(poly []uint64) {
	for l, m := range r.arithmetic {
		m.Forward(r.limb(poly, l))
	}
}

func (r *Ring) intt(poly []uint64) {
	for l, m := range r.arithmetic {
		m.Backward(r.limb(poly, l))
	}
}
