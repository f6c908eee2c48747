package product

import (
	"atoll/core/fault"
	"atoll/core/parallel"
	"atoll/core/vector"
)

// Right is a matrix in the clear, encoded and transformed for the right side of
// products; make it once and use it for every product with the same matrix.
//
// A streamed one keeps only the caller's integers, which must stay as they are
// until it is freed, and is encoded anew, block by block, in every product.
type Right struct {
	ring       *Ring
	layout     Layout
	polys      []uint64
	source     *Matrix // of a streamed one
	transposed bool    // whether the source holds the columns, one after the other
	narrow     bool    // whether every entry is a single word below half of any modulus
}

// String keeps the matrix out of logs.
func (b *Right) String() string { return "product.Right(" + b.ring.Name + ")" }

// GoString keeps the matrix out of %#v as well.
func (b *Right) GoString() string { return b.String() }

// EncodeRight encodes a matrix whose entries are all below 2^limit in magnitude.
func EncodeRight(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
	b, err := checkedRight(r, x, limit, y)
	if err != nil {
		return nil, err
	}
	length, cols := r.Limbs*r.N, y.colBlocks()
	polys := takeWords(y.RightPolys() * length)
	err = parallel.Run(y.RightPolys(), func(_, p int) error {
		for l := range r.Moduli {
			b.encode(r.limb(polys[p*length:(p+1)*length], l), p/cols, p%cols, l)
		}
		return nil
	})
	b.polys, b.source = polys, nil
	return b, err
}

// StreamTransposed is StreamRight for a matrix of which the transpose is given.
func StreamTransposed(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
	if y.Entrywise {
		return nil, fault.New(fault.Argument, "entries have no transpose")
	}
	across := y
	across.Inner, across.Cols = y.Cols, y.Inner
	b, err := StreamRight(r, x, limit, across)
	if err != nil {
		return nil, err
	}
	b.layout, b.transposed = y, true
	return b, nil
}

// StreamRight only checks the matrix and keeps it. Each block of an entrywise one is
// used once in a product anyway: it is encoded at once.
func StreamRight(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
	if y.Entrywise {
		return EncodeRight(r, x, limit, y)
	}
	return checkedRight(r, x, limit, y)
}

func checkedRight(r *Ring, x *Matrix, limit int, y Layout) (*Right, error) {
	if err := y.check(r); err != nil {
		return nil, err
	}
	if x.Rows != y.rightRows() || x.Cols != y.Cols {
		return nil, fault.New(fault.Argument, "a %d x %d matrix does not fit the layout", x.Rows, x.Cols)
	}
	if err := x.Check(limit); err != nil {
		return nil, err
	}
	narrow := x.Words == 1 && limit < modulusBits-1
	return &Right{ring: r, layout: y, source: x, narrow: narrow}, nil
}

// Free gives the memory back; the object must not be used afterwards.
func (b *Right) Free() {
	wipeWords(b.polys)
	b.source = nil
}

// encode fills one limb of one block, transformed.
func (b *Right) encode(limb []uint64, innerBlock, colBlock, l int) {
	r, x, y := b.ring, b.source, b.layout
	innerFrom, innerTo := y.rightSpan(innerBlock)
	colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
	used := y.right(innerTo-innerFrom-1, colTo-colFrom-1) + 1
	clear(limb[:used])
	q, next := r.Moduli[l], y.right(0, 1)
	for j := innerFrom; j < innerTo; j++ {
		place := y.right(j-innerFrom, 0)
		for k := colFrom; k < colTo; k++ {
			row, col := j, k
			if b.transposed {
				row, col = k, j
			}
			entry := x.At(row, col)
			if b.narrow {
				limb[place] = entry[0] + uint64(int64(entry[0])>>63)&q
			} else {
				limb[place] = r.residue(entry, l)
			}
			place += next
		}
	}
	r.arithmetic[l].ForwardOperand(limb, used)
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
	for _, term := range terms {
		if term.Left.c0 == nil {
			return fault.New(fault.Argument, "a ciphertext has no first halves yet")
		}
	}
	r, y := key.ring, terms[0].Right.layout
	if err := checkRoom(out, ProductSize(r, y)); err != nil {
		return err
	}
	length := r.Limbs * r.N
	c0, c1 := takeWords(y.OutPolys()*length), takeWords(y.OutPolys()*length)
	defer wipeWords(c0)
	defer wipeWords(c1)
	if err := r.chosenSum(terms)(c0, c1, terms, y); err != nil {
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
	return key.ring.checkTerms(terms, plain, limit)
}

func (r *Ring) checkTerms(terms []Term, plain *Matrix, limit int) error {
	if len(terms) == 0 {
		return fault.New(fault.Argument, "there is nothing to multiply")
	}
	y := terms[0].Right.layout
	blocks := 0
	for _, term := range terms {
		blocks += term.Right.layout.innerBlocks()
	}
	if blocks > vector.MaxBlocks {
		return fault.New(fault.Range, "%d blocks to add up, %d are possible", blocks, vector.MaxBlocks)
	}
	for _, term := range terms {
		left, right := term.Left, term.Right
		if left.ring != r || right.ring != r {
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

// tile is how many coefficients are accumulated at a time.
const tile = vector.Tile

// sumOfProducts fills c0 and c1, transformed, one column of blocks and one
// modulus at a time.
func (r *Ring) sumOfProducts(c0, c1 []uint64, terms []Term, y Layout) error {
	steps := y.colBlocks() * r.Limbs
	scratch := make([]vector.Sums, parallel.Workers(steps))
	return parallel.Run(steps, func(worker, step int) error {
		colBlock, l := step/r.Limbs, step%r.Limbs
		for from := 0; from < r.N; from += tile {
			for rowBlock := range y.rowBlocks() {
				sums := &scratch[worker]
				*sums = vector.Sums{}
				for t := range terms {
					r.accumulate(sums, &terms[t], rowBlock, colBlock, l, from)
				}
				place := (rowBlock*y.colBlocks()+colBlock)*r.Limbs*r.N + l*r.N + from
				r.arithmetic[l].Reduce(c0[place:place+tile], c1[place:place+tile], sums)
			}
		}
		return nil
	})
}

// accumulate adds one tile of the products over all inner blocks of a term.
func (r *Ring) accumulate(sums *vector.Sums, term *Term, rowBlock, colBlock, l, from int) {
	y, offset := term.Right.layout, l*r.N+from
	length, inner, cols := r.Limbs*r.N, y.innerBlocks(), y.colBlocks()
	left := rowBlock*inner*length + offset
	r.arithmetic[l].Accumulate(sums, term.Left.c0[left:], term.Left.c1[left:],
		term.Right.polys[y.firstRight(rowBlock, colBlock)*length+offset:], inner, length, cols*length)
}

// addZero adds a public-key encryption of zero, (u b, u a + e1); the error of the
// first half is added by extract, where it is needed.
func (p *PublicKey) addZero(first, second []uint64, s *stream) {
	r := p.ring
	u, e := r.poly(), r.poly()
	defer r.wiped(u)
	defer r.wiped(e)
	r.ternary(*u, s)
	r.ntt(*u)
	r.mulAddInto(first, *u, p.b)
	r.mulAddInto(second, *u, p.a)
	r.errors(*e, s)
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
