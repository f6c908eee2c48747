package ckks

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// lift is coefficient i as an integer around zero, of a polynomial modulo at most
// the three lowest moduli: Garner's mixed radix.
func (m *Machine) lift(p ring.Poly, i int) wide {
	q := m.Moduli
	value, modulus := wide{low: p.Coeffs[0][i]}, wide{low: q[0]}
	if p.Level() >= 1 {
		x0, x1 := p.Coeffs[0][i], p.Coeffs[1][i]
		digit1 := mulMod(subMod(x1, x0%q[1], q[1]), m.inverse[0], q[1])
		value = value.add(product(q[0], digit1))
		modulus = product(q[0], q[1])
		if p.Level() >= 2 {
			x2 := mulMod(subMod(p.Coeffs[2][i], x0%q[2], q[2]), m.inverse[1], q[2])
			digit2 := mulMod(subMod(x2, digit1%q[2], q[2]), m.inverse[2], q[2])
			value = value.add(times(modulus, digit2))
			modulus = times(modulus, q[2])
		}
	}
	half := wide{modulus.high >> 1, modulus.low>>1 | modulus.high<<63}
	if half.add(value.negated()).sign() != 0 {
		value = value.add(modulus.negated())
	}
	return value
}

func product(x, y uint64) wide {
	high, low := bits.Mul64(x, y)
	return wide{high, low}
}

// times is x y for a result below 2^127.
func times(x wide, y uint64) wide {
	low := product(x.low, y)
	low.high += x.high * y
	return low
}

func mulMod(x, y, q uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return bits.Rem64(high, low, q)
}

func subMod(x, y, q uint64) uint64 {
	if x >= y {
		return x - y
	}
	return x + q - y
}
