package product

import (
	"atoll/core/fault"
	"atoll/core/parallel"
)

// Ciphertext is an encrypted matrix, cut into blocks for the left side of a
// product: operands for sums of products, transformed. The second halves come from
// a common seed.
type Ciphertext struct {
	ring   *Ring
	layout Layout
	c0, c1 []uint64
}

// encodeLeft writes block (rowBlock, innerBlock) of x * 2^shift, not transformed.
func (r *Ring) encodeLeft(poly []uint64, x *Matrix, y Layout, rowBlock, innerBlock int, scale []uint64) {
	clear(poly)
	rowFrom, rowTo := span(rowBlock, y.BlockRows, y.Rows)
	innerFrom, innerTo := span(innerBlock, y.BlockInner, y.Inner)
	for i := rowFrom; i < rowTo; i++ {
		for j := innerFrom; j < innerTo; j++ {
			place := y.left(i-rowFrom, j-innerFrom)
			entry := x.At(i, j)
			for l, q := range r.Moduli {
				poly[l*r.N+place] = mulMod(r.residue(entry, l), scale[l], q, r.barrett[l])
			}
		}
	}
}

func (r *Ring) scale(shift int) []uint64 {
	scale := make([]uint64, r.Limbs)
	for l := range scale {
		scale[l] = r.powerOfTwo(shift, l)
	}
	return scale
}

// encryptPoly packs -a s + e + message, transformed; the message is used up.
func (k *Secret) encryptPoly(out []byte, message []uint64, common, seed []byte, index int) {
	r := k.ring
	a := r.poly()
	defer r.done(a)
	// The common seed is in the domain: even a seed used twice gives other errors.
	r.errors(*a, newStream(seed, forError, common, index))
	r.addInto(message, *a, r.N)
	r.ntt(message)
	r.uniform(*a, newStream(common, forCommon, nil, index))
	r.mulSubInto(message, *a, k.s)
	r.packResidues(out, message, r.N)
}

// Encrypt returns this party's part of the encryption of a matrix of which it
// holds an additive share: x * 2^shift under its own part of the key. The parts
// of all parties add up to the first halves of the ciphertext. `common` must be
// used for one matrix only, and never again under this key.
func (k *Secret) Encrypt(out []byte, x *Matrix, limit, shift int, y Layout, common, seed []byte) error {
	if err := checkSeeds(common, seed); err != nil {
		return err
	}
	if err := checkLeft(k.ring, x, limit, shift, y); err != nil {
		return err
	}
	r := k.ring
	size, scale := r.PolySize(), r.scale(shift)
	if err := checkRoom(out, y.LeftPolys()*size); err != nil {
		return err
	}
	return parallel.Run(y.LeftPolys(), func(_, p int) error {
		poly := r.poly()
		defer r.wiped(poly)
		r.encodeLeft(*poly, x, y, p/y.innerBlocks(), p%y.innerBlocks(), scale)
		k.encryptPoly(out[p*size:(p+1)*size], *poly, common, seed, p)
		return nil
	})
}

func checkLeft(r *Ring, x *Matrix, limit, shift int, y Layout) error {
	if err := y.check(r); err != nil {
		return err
	}
	if x.Rows != y.Rows || x.Cols != y.Inner {
		return fault.New(fault.Argument, "a %d x %d matrix does not fit the layout", x.Rows, x.Cols)
	}
	if shift < 0 || shift >= r.Limbs*modulusBits {
		return fault.New(fault.Argument, "a shift of %d bits makes no sense", shift)
	}
	return x.Check(limit)
}

// Assemble adds up the parties' parts and the coordinator's own, public share
// (nil if there is none): the first halves of the ciphertext, for everybody.
func Assemble(out []byte, r *Ring, public *Matrix, shift int, y Layout, parts [][]byte) error {
	if err := y.check(r); err != nil {
		return err
	}
	count := y.LeftPolys()
	if err := checkRoom(out, count*r.PolySize()); err != nil {
		return err
	}
	sum, err := AddPolys(r, count, parts)
	if err != nil {
		return err
	}
	defer giveWords(sum)
	if public != nil {
		if err := checkLeft(r, public, 64*public.Words, shift, y); err != nil {
			return err
		}
	}
	size, scale, length := r.PolySize(), r.scale(shift), r.Limbs*r.N
	return parallel.Run(count, func(_, p int) error {
		part := sum[p*length : (p+1)*length]
		if public != nil {
			poly := r.poly()
			defer r.done(poly)
			r.encodeLeft(*poly, public, y, p/y.innerBlocks(), p%y.innerBlocks(), scale)
			r.ntt(*poly)
			r.addInto(part, *poly, r.N)
		}
		r.packResidues(out[p*size:(p+1)*size], part, r.N)
		return nil
	})
}

// Free gives the memory back; the object must not be used afterwards.
func (c *Ciphertext) Free() {
	giveWords(c.c0)
	giveWords(c.c1)
}

// NewCiphertext reads assembled first halves and expands the second ones.
func NewCiphertext(r *Ring, y Layout, first, common []byte) (*Ciphertext, error) {
	c, err := BeginCiphertext(r, y, common)
	if err != nil {
		return nil, err
	}
	if err := c.Complete(first); err != nil {
		c.Free()
		return nil, err
	}
	return c, nil
}

// BeginCiphertext expands the second halves, which are known before anything is encrypted.
func BeginCiphertext(r *Ring, y Layout, common []byte) (*Ciphertext, error) {
	if err := y.check(r); err != nil {
		return nil, err
	}
	if err := checkSeed(common); err != nil {
		return nil, err
	}
	length := r.Limbs * r.N
	c := &Ciphertext{ring: r, layout: y, c1: takeWords(y.LeftPolys() * length)}
	err := parallel.Run(y.LeftPolys(), func(_, p int) error {
		second := c.c1[p*length : (p+1)*length]
		r.uniform(second, newStream(common, forCommon, nil, p))
		r.operand(second)
		return nil
	})
	return c, err
}

// Complete reads the assembled first halves of a ciphertext that was begun; once.
func (c *Ciphertext) Complete(first []byte) error {
	if c.c0 != nil {
		return fault.New(fault.Argument, "a ciphertext has its first halves already")
	}
	r := c.ring
	c0, err := AddPolys(r, c.layout.LeftPolys(), [][]byte{first})
	if err != nil {
		return err
	}
	length := r.Limbs * r.N
	c.c0 = c0
	return parallel.Run(c.layout.LeftPolys(), func(_, p int) error {
		r.operand(c0[p*length : (p+1)*length])
		return nil
	})
}
