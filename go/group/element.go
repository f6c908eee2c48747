package group

import (
	"bytes"
	"encoding/hex"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"

	"atoll/core/fault"
)

// ElementSize is how many bytes an encoded element or a scalar takes.
const ElementSize = 32

// Constants of RFC 9496, section 4.1, as little-endian bytes.
var (
	curveD          = constant("a3785913ca4deb75abd841414d0a700098e879777940c78c73fe6f2bee6c0352")
	sqrtMinusOne    = constant("b0a00e4a271beec478e42fad0618432fa7d7fb3d99004d2b0bdfc14f8024832b")
	invSqrtAMinusD  = constant("ea405d80aafdc899be72415a17162f9d40d801fe917bc216a2fcafcf05896c78")
	identityElement = make([]byte, ElementSize)
)

func constant(text string) *field.Element {
	raw, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	value, err := new(field.Element).SetBytes(raw)
	if err != nil {
		panic(err)
	}
	return value
}

// decode reads an element (RFC 9496, 4.3.1).
func decode(data []byte) (*edwards25519.Point, error) {
	malformed := fault.New(fault.Message, "a group element is malformed")
	if len(data) != ElementSize {
		return nil, malformed
	}
	s, err := new(field.Element).SetBytes(data)
	if err != nil || !bytes.Equal(s.Bytes(), data) || s.IsNegative() == 1 {
		return nil, malformed
	}
	one := new(field.Element).One()
	ss := new(field.Element).Square(s)
	u1 := new(field.Element).Subtract(one, ss)
	u2 := new(field.Element).Add(one, ss)
	u2sqr := new(field.Element).Square(u2)

	v := new(field.Element).Square(u1) // v = -(D u1^2) - u2^2
	v.Multiply(v, curveD).Negate(v).Subtract(v, u2sqr)
	inv, wasSquare := new(field.Element).SqrtRatio(one, new(field.Element).Multiply(v, u2sqr))

	denX := new(field.Element).Multiply(inv, u2)
	denY := new(field.Element).Multiply(inv, denX)
	denY.Multiply(denY, v)
	x := new(field.Element).Multiply(s, denX)
	x.Add(x, x).Absolute(x)
	y := new(field.Element).Multiply(u1, denY)
	t := new(field.Element).Multiply(x, y)
	if wasSquare == 0 || t.IsNegative() == 1 || y.Equal(new(field.Element).Zero()) == 1 {
		return nil, malformed
	}
	point, err := new(edwards25519.Point).SetExtendedCoordinates(x, y, one, t)
	if err != nil {
		return nil, malformed
	}
	return point, nil
}

// decodeKey is decode for what must not be the identity.
func decodeKey(data []byte) (*edwards25519.Point, error) {
	if bytes.Equal(data, identityElement) {
		return nil, fault.New(fault.Message, "a group element is the identity")
	}
	return decode(data)
}

// encode writes an element (RFC 9496, 4.3.2).
func encode(out []byte, point *edwards25519.Point) {
	x0, y0, z0, t0 := point.ExtendedCoordinates()
	u1 := new(field.Element).Add(z0, y0)
	u1.Multiply(u1, new(field.Element).Subtract(z0, y0))
	u2 := new(field.Element).Multiply(x0, y0)

	product := new(field.Element).Square(u2)
	inv, _ := new(field.Element).SqrtRatio(new(field.Element).One(), product.Multiply(product, u1))
	den1 := new(field.Element).Multiply(inv, u1)
	den2 := new(field.Element).Multiply(inv, u2)
	zInv := new(field.Element).Multiply(den1, den2)
	zInv.Multiply(zInv, t0)

	rotate := new(field.Element).Multiply(t0, zInv).IsNegative()
	x := new(field.Element).Select(new(field.Element).Multiply(y0, sqrtMinusOne), x0, rotate)
	y := new(field.Element).Select(new(field.Element).Multiply(x0, sqrtMinusOne), y0, rotate)
	enchanted := new(field.Element).Multiply(den1, invSqrtAMinusD)
	denInv := new(field.Element).Select(enchanted, den2, rotate)

	flip := new(field.Element).Multiply(x, zInv).IsNegative()
	y.Select(new(field.Element).Negate(y), y, flip)
	s := new(field.Element).Subtract(z0, y)
	s.Multiply(s, denInv).Absolute(s)
	copy(out, s.Bytes())
}
