package product

import (
	"atoll/core/parallel"
	"atoll/core/vector"
)

// fallsIntoParts tells whether right sides are all streamed, of single words and short enough that
// sumOfParts can make a product, on a path that has it.
func (r *Ring) fallsIntoParts(terms []Term) bool {
	if _, can := r.arithmetic[0].(vector.Parted); !can {
		return false
	}
	for _, term := range terms {
		right := term.Right
		if right.source == nil || !right.narrow || right.layout.BlockInner*right.layout.BlockCols > vector.PartMax {
			return false
		}
	}
	return true
}

// sumOfParts is sumOfStreamed one part of the transforms and one modulus at a time, for all columns: all
// of the left side that meets it stays in the cache.
func (r *Ring) sumOfParts(c0, c1 []uint64, terms []Term, y Layout) error {
	size := vector.PartMin
	for size < y.BlockInner*y.BlockCols {
		size *= 2
	}
	smalls := make([][]uint64, len(terms))
	for t, term := range terms {
		small, err := term.Right.coefficients(size)
		if err != nil {
			return err
		}
		defer giveWords(small)
		smalls[t] = small
	}
	parts := r.N / size
	steps := parts * r.Limbs
	rooms := make([]*vector.PartSums, parallel.Workers(steps))
	for i := range rooms {
		rooms[i] = vector.NewPartSums(size, y.rowBlocks())
	}
	return parallel.Run(steps, func(worker, step int) error {
		r.sumOfPart(c0, c1, terms, smalls, y, rooms[worker], step/parts, step%parts)
		return nil
	})
}

// sumOfPart fills one part modulo the l-th modulus of all results.
func (r *Ring) sumOfPart(
	c0, c1 []uint64, terms []Term, smalls [][]uint64, y Layout, sums *vector.PartSums, l, part int,
) {
	m, length, at := r.arithmetic[l].(vector.Parted), r.Limbs*r.N, l*r.N+part*sums.Size
	for col := range y.colBlocks() {
		sums.Start(part)
		for t, term := range terms {
			inner := term.Right.layout.innerBlocks()
			m.AddParts(sums, smalls[t][col*inner*sums.Size:], sums.Size,
				term.Left.c0[at:], term.Left.c1[at:], length, inner)
		}
		for row := range y.rowBlocks() {
			out := (row*y.colBlocks()+col)*length + at
			m.ReduceParts(c0[out:], c1[out:], sums, row)
		}
	}
}

// coefficients lays out all blocks, column after column, `size` coefficients each, which serve every
// modulus. Give them back with giveWords.
func (b *Right) coefficients(size int) ([]uint64, error) {
	y, x := b.layout, b.source
	inner := y.innerBlocks()
	small := takeWords(y.RightPolys() * size)
	err := parallel.Run(y.colBlocks(), func(_, colBlock int) error {
		colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
		for innerBlock := range inner {
			innerFrom, innerTo := span(innerBlock, y.BlockInner, y.Inner)
			place := colBlock*inner + innerBlock
			block := small[place*size : (place+1)*size]
			clear(block)
			for k := colFrom; k < colTo; k++ {
				for j := innerFrom; j < innerTo; j++ {
					row, col := j, k
					if b.turned {
						row, col = k, j
					}
					block[y.right(j-innerFrom, k-colFrom)] = vector.Small(int64(x.Data[row*x.Cols+col]))
				}
			}
		}
		return nil
	})
	return small, err
}
