package product

import (
	"math/bits"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// Right is a matrix in the clear, encoded and transformed for the right side of
// products; make it once and use it for every product with the same matrix.
type Right struct {
	ring   *Ring
	layout Layout
	polys  []uint64
}

// String keeps the matrix out of logs.
func (b *Right) String() string { return "product.Right(" + b.ring.Name + ")" }

// GoString keeps the matrix out of %#v as well.
func (b *Right) GoString() string { return b.String() }

// EncodeRight encodes a matrix whose entries are all below 2^limit in magnitude.
func EncodeRight(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
	if err := y.check(r); err != nil {
		return nil, err
	}
	if x.Rows != y.Inner || x.Cols != y.Cols {
		return nil, fault.New(fault.Argument, "a %d x %d matrix does not fit the layout", x.Rows, x.Cols)
	}
	if err := x.Check(limit); err != nil {
		return nil, err
	}
	length, cols := r.Limbs*r.N, y.colBlocks()
	b := &Right{ring: r, layout: y, polys: takeWords(y.RightPolys() * length)}
	err := parallel.Run(y.RightPolys(), func(_, p int) error {
		poly := b.polys[p*length : (p+1)*length]
		clear(poly)
		r.encodeRight(poly, x, y, p/cols, p%cols)
		r.ntt(poly)
		return nil
	})
	return b, err
}

// Free gives the memory back; the object must not be used afterwards.
func (b *Right) Free() { giveWords(b.polys) }

func (r *Ring) encodeRight(poly []uint64, x *Matrix, y Layout, innerBlock, colBlock int) {
	innerFrom, innerTo := span(innerBlock, y.BlockInner, y.Inner)
	colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
	for j := innerFrom; j < innerTo; j++ {
		for k := colFrom; k < colTo; k++ {
			place := y.right(j-innerFrom, k-colFrom)
			entry := x.At(j, k)
			for l := range r.Moduli {
				poly[l*r.N+place] = r.residue(entry, l)
			}
		}
	}
}

// Term is one product in a sum of products.
type Term struct {
	Left  *Ciphertext
	Right *Right
}

// ProductSize is the number of bytes of a product message.
func ProductSize(r *Ring, y Layout) int {
	return r.residuesSize(y.Rows*y.Cols) + y.OutPolys()*r.PolySize()
}

// Multiply returns the sum of the terms plus the matrix `plain` (nil: none), the
// first halves cut down to the coefficients that carry a result, the second
// halves whole. A fresh encryption of zero is added to every ciphertext, because
// the second halves are otherwise linear equations for the party's own matrix.
func Multiply(out []byte, key *PublicKey, terms []Term, plain *Matrix, limit int, seed, domain []byte) error {
	return multiply(out, key, terms, plain, limit, seed, domain, true)
}

func multiply(
	out []byte, key *PublicKey, terms []Term, plain *Matrix, limit int, seed, domain []byte, rerandomise bool,
) error {
	if err := checkTerms(key, terms, plain, limit); err != nil {
		return err
	}
	if err := checkSeed(seed); err != nil {
		return err
	}
	r, y := key.ring, terms[0].Right.layout
	if err := checkRoom(out, ProductSize(r, y)); err != nil {
		return err
	}
	length := r.Limbs * r.N
	c0, c1 := takeWords(y.OutPolys()*length), takeWords(y.OutPolys()*length)
	defer giveWords(c0)
	defer giveWords(c1)
	if err := r.sumOfProducts(c0, c1, terms, y); err != nil {
		return err
	}
	useful := make([]uint64, r.Limbs*y.Rows*y.Cols)
	tail := out[r.residuesSize(y.Rows*y.Cols):]
	size := r.PolySize()
	err := parallel.Run(y.OutPolys(), func(_, p int) error {
		first, second := c0[p*length:(p+1)*length], c1[p*length:(p+1)*length]
		s := newStream(seed, forZero, domain, p)
		if rerandomise {
			key.addZero(first, second, s)
		}
		r.packResidues(tail[p*size:(p+1)*size], second, r.N)
		r.intt(first)
		r.extract(useful, first, y, p/y.colBlocks(), p%y.colBlocks(), s)
		return nil
	})
	if err != nil {
		return err
	}
	r.addPlain(useful, plain)
	r.packResidues(out, useful, y.Rows*y.Cols)
	return nil
}

func checkTerms(key *PublicKey, terms []Term, plain *Matrix, limit int) error {
	if len(terms) == 0 {
		return fault.New(fault.Argument, "there is nothing to multiply")
	}
	y := terms[0].Right.layout
	blocks := 0
	for _, term := range terms {
		blocks += term.Right.layout.innerBlocks()
	}
	if blocks > maxBlocks {
		return fault.New(fault.Range, "%d blocks to add up, %d are possible", blocks, maxBlocks)
	}
	for _, term := range terms {
		left, right := term.Left, term.Right
		if left.ring != key.ring || right.ring != key.ring {
			return fault.New(fault.Argument, "a product stays in one ring")
		}
		if !left.layout.sameLeft(right.layout) || !right.layout.sameOutput(y) {
			return fault.New(fault.Argument, "the two sides of a product have different layouts")
		}
	}
	if plain == nil {
		return nil
	}
	if plain.Rows != y.Rows || plain.Cols != y.Cols {
		return fault.New(fault.Argument, "a %d x %d matrix cannot be added to a %d x %d product",
			plain.Rows, plain.Cols, y.Rows, y.Cols)
	}
	return plain.Check(limit)
}

// tile is how many coefficients are accumulated at a time, so that the
// accumulators stay in the first-level cache.
const tile = 512

type accumulators struct{ high0, low0, high1, low1 [tile]uint64 }

// join turns sums of 52-bit halves into sums of 128 bits.
func (s *accumulators) join() {
	for i := range tile {
		s.high0[i], s.low0[i] = joined(s.high0[i], s.low0[i])
		s.high1[i], s.low1[i] = joined(s.high1[i], s.low1[i])
	}
}

func joined(high, low uint64) (uint64, uint64) {
	sum, carry := bits.Add64(high<<modulusBits, low, 0)
	return high>>(64-modulusBits) + carry, sum
}

// maxBlocks: sums of so many 52-bit halves fit 64 bits.
const maxBlocks = 1 << (64 - modulusBits)

// sumOfProducts fills c0 and c1, transformed, one column of blocks and one
// modulus at a time.
func (r *Ring) sumOfProducts(c0, c1 []uint64, terms []Term, y Layout) error {
	steps := y.colBlocks() * r.Limbs
	scratch := make([]accumulators, parallel.Workers(steps))
	return parallel.Run(steps, func(worker, step int) error {
		colBlock, l := step/r.Limbs, step%r.Limbs
		for from := 0; from < r.N; from += tile {
			for rowBlock := range y.rowBlocks() {
				sums := &scratch[worker]
				*sums = accumulators{}
				for t := range terms {
					r.accumulate(sums, &terms[t], rowBlock, colBlock, l*r.N+from)
				}
				if hasIFMA {
					sums.join()
				}
				place := (rowBlock*y.colBlocks()+colBlock)*r.Limbs*r.N + l*r.N + from
				r.reduceTile(c0[place:place+tile], &sums.high0, &sums.low0, l)
				r.reduceTile(c1[place:place+tile], &sums.high1, &sums.low1, l)
			}
		}
		return nil
	})
}

func (r *Ring) reduceTile(out []uint64, high, low *[tile]uint64, l int) {
	q, constant := r.Moduli[l], r.barrett[l]
	for i := range out {
		out[i] = reduce128(high[i], low[i], q, constant)
	}
}

// accumulate adds one tile of the products over all inner blocks of a term.
func (r *Ring) accumulate(sums *accumulators, term *Term, rowBlock, colBlock, offset int) {
	y := term.Right.layout
	length, inner, cols := r.Limbs*r.N, y.innerBlocks(), y.colBlocks()
	left := func(half []uint64, j int) []uint64 {
		place := (rowBlock*inner+j)*length + offset
		return half[place : place+tile]
	}
	right := func(j int) []uint64 {
		place := (j*cols+colBlock)*length + offset
		return term.Right.polys[place : place+tile]
	}
	c0, c1 := term.Left.c0, term.Left.c1
	if hasIFMA {
		j := 0
		for ; j+4 <= inner; j += 4 {
			accumulate4IFMA(&sums.high0[0], &sums.low0[0], &sums.high1[0], &sums.low1[0],
				&left(c0, j)[0], &left(c1, j)[0], &right(j)[0], tile, 8*length, 8*cols*length)
		}
		for ; j < inner; j++ {
			accumulateIFMA(&sums.high0[0], &sums.low0[0], &sums.high1[0], &sums.low1[0],
				&left(c0, j)[0], &left(c1, j)[0], &right(j)[0], tile)
		}
		return
	}
	j := 0
	for ; j+4 <= inner; j += 4 {
		x := [4][]uint64{left(c0, j), left(c0, j+1), left(c0, j+2), left(c0, j+3)}
		z := [4][]uint64{left(c1, j), left(c1, j+1), left(c1, j+2), left(c1, j+3)}
		b := [4][]uint64{right(j), right(j + 1), right(j + 2), right(j + 3)}
		accumulate4(sums.high0[:], sums.low0[:], sums.high1[:], sums.low1[:], &x, &z, &b)
	}
	for ; j < inner; j++ {
		accumulate1(sums.high0[:], sums.low0[:], sums.high1[:], sums.low1[:], left(c0, j), left(c1, j), right(j))
	}
}

// addZero adds a public-key encryption of zero, (u b, u a + e1); the error of the
// first half is added by extract, where it is needed.
func (p *PublicKey) addZero(first, second []uint64, s *stream) {
	r := p.ring
	u, e := r.poly(), r.poly()
	defer r.done(u)
	defer r.done(e)
	r.ternary(*u, s)
	r.ntt(*u)
	r.mulAddInto(first, *u, p.b)
	r.mulAddInto(second, *u, p.a)
	clear(*e)
	r.addErrors(*e, s)
	r.ntt(*e)
	r.addInto(second, *e, r.N)
}

// extract copies the results of one block, each with a small error of its own.
func (r *Ring) extract(useful, poly []uint64, y Layout, rowBlock, colBlock int, s *stream) {
	rowFrom, rowTo := span(rowBlock, y.BlockRows, y.Rows)
	colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
	count := y.Rows * y.Cols
	for i := rowFrom; i < rowTo; i++ {
		for k := colFrom; k < colTo; k++ {
			place := y.out(i-rowFrom, k-colFrom)
			noise := smallError(s)
			sign := uint64(noise >> 63)
			for l, q := range r.Moduli {
				useful[l*count+i*y.Cols+k] = addMod(poly[l*r.N+place], uint64(noise)+sign&q, q)
			}
		}
	}
}

func (r *Ring) addPlain(useful []uint64, plain *Matrix) {
	if plain == nil {
		return
	}
	count := plain.Rows * plain.Cols
	for e := range count {
		entry := plain.Data[e*plain.Words : (e+1)*plain.Words]
		for l, q := range r.Moduli {
			useful[l*count+e] = addMod(useful[l*count+e], r.residue(entry, l), q)
		}
	}
}
