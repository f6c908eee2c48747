package product

import "math/bits"

// reduce128 is (high 2^64 + low) modulo q < 2^52, by Barrett's method with
// constant = floor(2^128 / q) as (high, low) words.
func reduce128(high, low, q uint64, constant [2]uint64) uint64 {
	// Bits 128 to 191 of (high, low) * constant are the quotient, at most two short.
	carried, _ := bits.Mul64(low, constant[1])
	midHigh1, midLow1 := bits.Mul64(low, constant[0])
	midHigh2, midLow2 := bits.Mul64(high, constant[1])
	sum, carry1 := bits.Add64(midLow1, midLow2, 0)
	_, carry2 := bits.Add64(sum, carried, 0)
	quotient := high*constant[0] + midHigh1 + midHigh2 + carry1 + carry2
	rest := low - quotient*q
	if rest >= q {
		rest -= q
	}
	if rest >= q {
		rest -= q
	}
	return rest
}

func mulMod(x, y, q uint64, constant [2]uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return reduce128(high, low, q, constant)
}

func addMod(x, y, q uint64) uint64 {
	sum := x + y
	if sum >= q {
		sum -= q
	}
	return sum
}

func subMod(x, y, q uint64) uint64 {
	if x >= y {
		return x - y
	}
	return x + q - y
}

// addInto adds y to x limb by limb modulo the moduli; both hold `count` values per limb.
func (r *Ring) addInto(x, y []uint64, count int) {
	for l, q := range r.Moduli {
		a, b := x[l*count:(l+1)*count], y[l*count:(l+1)*count]
		for i := range a {
			a[i] = addMod(a[i], b[i], q)
		}
	}
}

// prepare turns a transformed polynomial into a factor for the functions below.
func (r *Ring) prepare(poly []uint64) {
	if !hasIFMA {
		return
	}
	for l, t := range r.twiddles {
		scaleIFMA(&r.limb(poly, l)[0], r.N, t.lift, t.q, t.inverse)
	}
}

// mulAddInto adds x times the prepared factor y to sum (transformed polynomials).
func (r *Ring) mulAddInto(sum, x, y []uint64) {
	if hasIFMA {
		for l, t := range r.twiddles {
			multiplyAddIFMA(&r.limb(sum, l)[0], &r.limb(x, l)[0], &r.limb(y, l)[0], r.N, t.q, t.inverse)
		}
		return
	}
	for l, q := range r.Moduli {
		s, a, b := r.limb(sum, l), r.limb(x, l), r.limb(y, l)
		constant := r.barrett[l]
		for i := range s {
			s[i] = addMod(s[i], mulMod(a[i], b[i], q, constant), q)
		}
	}
}

// mulSubInto subtracts x times the prepared factor y from sum.
func (r *Ring) mulSubInto(sum, x, y []uint64) {
	if hasIFMA {
		for l, t := range r.twiddles {
			multiplySubIFMA(&r.limb(sum, l)[0], &r.limb(x, l)[0], &r.limb(y, l)[0], r.N, t.q, t.inverse)
		}
		return
	}
	for l, q := range r.Moduli {
		s, a, b := r.limb(sum, l), r.limb(x, l), r.limb(y, l)
		constant := r.barrett[l]
		for i := range s {
			s[i] = subMod(s[i], mulMod(a[i], b[i], q, constant), q)
		}
	}
}

// mulInto sets out = x times the prepared factor y.
func (r *Ring) mulInto(out, x, y []uint64) {
	if hasIFMA {
		for l, t := range r.twiddles {
			multiplyIFMA(&r.limb(out, l)[0], &r.limb(x, l)[0], &r.limb(y, l)[0], r.N, t.q, t.inverse)
		}
		return
	}
	for l, q := range r.Moduli {
		s, a, b := r.limb(out, l), r.limb(x, l), r.limb(y, l)
		constant := r.barrett[l]
		for i := range s {
			s[i] = mulMod(a[i], b[i], q, constant)
		}
	}
}

// The accumulators below hold sums of products of two residues, 104 bits each,
// in 128 bits: 2^24 products fit, far more than blocks in any matrix.

// accumulate4 adds four products to each of two sums, which share one factor.
func accumulate4(high0, low0, high1, low1 []uint64, x, y, b *[4][]uint64) {
	n := len(high0)
	low0, high1, low1 = low0[:n], high1[:n], low1[:n]
	x0, x1, x2, x3 := x[0][:n], x[1][:n], x[2][:n], x[3][:n]
	y0, y1, y2, y3 := y[0][:n], y[1][:n], y[2][:n], y[3][:n]
	b0, b1, b2, b3 := b[0][:n], b[1][:n], b[2][:n], b[3][:n]
	for i := 0; i < n; i++ {
		f0, f1, f2, f3 := b0[i], b1[i], b2[i], b3[i]
		h, s := high0[i], low0[i]
		ph, pl := bits.Mul64(x0[i], f0)
		s, c := bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x1[i], f1)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x2[i], f2)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(x3[i], f3)
		s, c = bits.Add64(s, pl, 0)
		high0[i], low0[i] = h+ph+c, s

		h, s = high1[i], low1[i]
		ph, pl = bits.Mul64(y0[i], f0)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y1[i], f1)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y2[i], f2)
		s, c = bits.Add64(s, pl, 0)
		h += ph + c
		ph, pl = bits.Mul64(y3[i], f3)
		s, c = bits.Add64(s, pl, 0)
		high1[i], low1[i] = h+ph+c, s
	}
}

// accumulate1 adds one product to each of two sums.
func accumulate1(high0, low0, high1, low1, x, y, b []uint64) {
	n := len(high0)
	low0, high1, low1, x, y, b = low0[:n], high1[:n], low1[:n], x[:n], y[:n], b[:n]
	for i := 0; i < n; i++ {
		ph, pl := bits.Mul64(x[i], b[i])
		s, c := bits.Add64(low0[i], pl, 0)
		high0[i], low0[i] = high0[i]+ph+c, s
		ph, pl = bits.Mul64(y[i], b[i])
		s, c = bits.Add64(low1[i], pl, 0)
		high1[i], low1[i] = high1[i]+ph+c, s
	}
}
