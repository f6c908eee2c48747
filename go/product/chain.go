package product

import (
	"atoll/core/fault"
	"atoll/core/parallel"
)

// Products in a chain: their ciphertexts are made of masks alone, before anybody knows a factor. What the public
// parts of the factors add to them is added here, once they are known.

// AddPublic writes a product message of the terms, whose right sides everybody knows, its second halves added to
// those given. They hide nothing, so that no encryption of zero is added and everybody finds the same.
func AddPublic(out, second []byte, terms []Term) error {
	if len(terms) == 0 {
		return fault.New(fault.Argument, "there is nothing to multiply")
	}
	r, y := terms[0].Right.ring, terms[0].Right.layout
	if err := checkTerms(r, terms, nil, 0); err != nil {
		return err
	}
	size, length, count := r.PolySize(), r.Limbs*r.N, y.Rows*y.Cols
	if err := r.checkSize(second, y.OutPolys()*size, "the second halves of a product"); err != nil {
		return err
	}
	if err := checkRoom(out, ProductSize(r, y)); err != nil {
		return err
	}
	c0, c1 := takeWords(y.OutPolys()*length), takeWords(y.OutPolys()*length)
	defer giveWords(c0)
	defer giveWords(c1)
	if err := r.chosenSum(terms)(c0, c1, terms, y); err != nil {
		return err
	}
	useful, tail := make([]uint64, r.Limbs*count), out[r.residuesSize(count):]
	err := parallel.Run(y.OutPolys(), func(_, p int) error {
		first, sum := c0[p*length:(p+1)*length], c1[p*length:(p+1)*length]
		if err := r.unpackAdd(sum, second[p*size:(p+1)*size], r.N); err != nil {
			return err
		}
		r.packResidues(tail[p*size:(p+1)*size], sum, r.N)
		r.intt(first)
		r.extract(useful, first, y, p/y.colBlocks(), p%y.colBlocks(), nil)
		return nil
	})
	r.packResidues(out, useful, count)
	return err
}

// AddProduct adds 2^shift x y in the clear, or of entrywise layouts the product of x with every column of y.
func (p *ProductSum) AddProduct(x, y *Matrix, shift int) error {
	r, inner := p.ring, x.Cols
	rows := inner
	if p.layout.Entrywise {
		rows = x.Rows
	}
	fits := x.Rows == p.layout.Rows && y.Cols == p.layout.Cols && y.Rows == rows
	if !fits || (p.layout.Entrywise && inner != 1) {
		return fault.New(fault.Argument, "a %d x %d and a %d x %d matrix do not make the product",
			x.Rows, x.Cols, y.Rows, y.Cols)
	}
	if shift < 0 || shift >= r.Limbs*modulusBits {
		return fault.New(fault.Argument, "a shift of %d bits makes no sense", shift)
	}
	return parallel.Run(r.Limbs, func(_, l int) error {
		q, constant, scale := r.Moduli[l], r.barrett[l], r.powerOfTwo(shift, l)
		right, row := make([]uint64, y.Rows*y.Cols), make([]uint64, inner)
		for e := range right {
			right[e] = mulMod(r.residue(y.Data[e*y.Words:(e+1)*y.Words], l), scale, q, constant)
		}
		for i := range x.Rows {
			for j := range row {
				row[j] = r.residue(x.At(i, j), l)
			}
			out := p.first[(l*x.Rows+i)*y.Cols : (l*x.Rows+i+1)*y.Cols]
			for j, factor := range row {
				from := j
				if p.layout.Entrywise {
					from = i
				}
				for k, value := range right[from*y.Cols : (from+1)*y.Cols] {
					out[k] = addMod(out[k], mulMod(factor, value, q, constant), q)
				}
			}
		}
		clear(right)
		return nil
	})
}
