package product

import (
	"sync"

	"atoll/core/parallel"
	"atoll/core/vector"
)

// Blocks encoded at a time: so many columns of blocks, and so many blocks along
// the inner dimension. Columns share what is read of the left side, which does
// not fit any cache.
const (
	streamCols  = 4
	streamInner = 4
)

// chosenSum is sumOfStreamed where a right side is not encoded yet, or sumOfParts
// where that can be done.
func (r *Ring) chosenSum(terms []Term) func(c0, c1 []uint64, terms []Term, y Layout) error {
	if r.fallsIntoParts(terms) {
		return r.sumOfParts
	}
	for _, term := range terms {
		if term.Right.source != nil {
			return r.sumOfStreamed
		}
	}
	return r.sumOfProducts
}

// stage is one worker's place for a few encoded blocks and all sums that they enter.
type stage struct {
	rights []uint64
	sums   []vector.Sums
}

// Stages are megabytes: fresh ones would cost as much as the work in them.
var stagePool = sync.Pool{New: func() any { return new(stage) }}

func borrowStage(words, sums int) *stage {
	s := stagePool.Get().(*stage)
	if cap(s.rights) < words {
		s.rights = make([]uint64, words)
	}
	if cap(s.sums) < sums {
		s.sums = make([]vector.Sums, sums)
	}
	s.rights, s.sums = s.rights[:words], s.sums[:sums]
	return s
}

// giveBack wipes what follows from the right sides.
func (s *stage) giveBack() {
	clear(s.rights)
	clear(s.sums)
	stagePool.Put(s)
}

// sumOfStreamed is sumOfProducts where right sides are encoded on the way, a few
// columns of blocks and one modulus at a time.
func (r *Ring) sumOfStreamed(c0, c1 []uint64, terms []Term, y Layout) error {
	steps := ceilDiv(y.colBlocks(), streamCols) * r.Limbs
	stages := make([]*stage, parallel.Workers(steps))
	for i := range stages {
		stages[i] = borrowStage(streamCols*streamInner*r.N, streamCols*y.rowBlocks()*(r.N/tile))
		defer stages[i].giveBack()
	}
	return parallel.Run(steps, func(worker, step int) error {
		s, l := stages[worker], step%r.Limbs
		colFrom, colTo := span(step/r.Limbs, streamCols, y.colBlocks())
		clear(s.sums)
		for _, term := range terms {
			inner := term.Right.layout.innerBlocks()
			for from := 0; from < inner; from += streamInner {
				s.takeIn(r, term, from, min(from+streamInner, inner), colFrom, colTo, l)
			}
		}
		for place, rowBlock := 0, 0; rowBlock < y.rowBlocks(); rowBlock++ {
			for colBlock := colFrom; colBlock < colTo; colBlock++ {
				for offset := 0; offset < r.N; offset += tile {
					out := ((rowBlock*y.colBlocks()+colBlock)*r.Limbs+l)*r.N + offset
					r.arithmetic[l].Reduce(c0[out:out+tile], c1[out:out+tile], &s.sums[place])
					place++
				}
			}
		}
		return nil
	})
}

// takeIn adds the products with inner blocks [innerFrom, innerTo) to all sums.
func (s *stage) takeIn(r *Ring, term Term, innerFrom, innerTo, colFrom, colTo, l int) {
	y := term.Right.layout
	inner, length, count := y.innerBlocks(), r.Limbs*r.N, innerTo-innerFrom
	rights, distance, next := s.encoded(r, term.Right, innerFrom, innerTo, colFrom, colTo, l)
	tiles := r.N / tile
	for part := range tiles {
		for rowBlock := range y.rowBlocks() {
			left := (rowBlock*inner+innerFrom)*length + l*r.N + part*tile
			for col := range colTo - colFrom {
				sums := &s.sums[(rowBlock*(colTo-colFrom)+col)*tiles+part]
				r.arithmetic[l].Accumulate(sums, term.Left.c0[left:], term.Left.c1[left:],
					rights[col*next+part*tile:], count, length, distance)
			}
		}
	}
}

// encoded gives one limb of a few blocks, and the distances from an inner block
// and from a column to the next.
func (s *stage) encoded(
	r *Ring, right *Right, innerFrom, innerTo, colFrom, colTo, l int,
) (polys []uint64, distance, next int) {
	length, cols := r.Limbs*r.N, right.layout.colBlocks()
	if right.source == nil {
		return right.polys[(innerFrom*cols+colFrom)*length+l*r.N:], cols * length, length
	}
	next = streamInner * r.N
	for colBlock := colFrom; colBlock < colTo; colBlock++ {
		for innerBlock := innerFrom; innerBlock < innerTo; innerBlock++ {
			place := (colBlock-colFrom)*next + (innerBlock-innerFrom)*r.N
			right.encode(s.rights[place:place+r.N], innerBlock, colBlock, l)
		}
	}
	return s.rights, r.N, next
}
