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

// partWords bounds the coefficients that are laid out at a time, unless one column of blocks has more: 32 MB.
var partWords = 4 << 20

// sumOfParts is sumOfStreamed one part of the transforms and one modulus at a time, for many columns of blocks:
// all of the left side that meets them stays in the cache.
func (r *Ring) sumOfParts(c0, c1 []uint64, terms []Term, y Layout) error {
	size, inner := vector.PartMin, 0
	for size < y.BlockInner*y.BlockCols {
		size *= 2
	}
	for _, term := range terms {
		inner += term.Right.layout.innerBlocks()
	}
	cols := min(max(1, partWords/(inner*size)), y.colBlocks())
	small := takeWords(cols * inner * size)
	defer wipeWords(small) // a party's own numbers
	parts := r.N / size
	steps := parts * r.Limbs
	rooms := make([]*partRoom, parallel.Workers(steps))
	for i := range rooms {
		rooms[i] = newPartRoom(size, inner, min(cols, y.colBlocks()), y)
		defer rooms[i].giveBack()
	}
	for from := 0; from < y.colBlocks(); from += cols {
		to := min(from+cols, y.colBlocks())
		err := parallel.Run(to-from, func(_, i int) error {
			place := small[i*inner*size : (i+1)*inner*size]
			for _, term := range terms {
				place = term.Right.coefficients(place, from+i, size)
			}
			return nil
		})
		if err == nil {
			err = parallel.Run(steps, func(worker, step int) error {
				r.sumOfPart(c0, c1, terms, small, y, from, to, rooms[worker], step/parts, step%parts)
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partRoom is one worker's place for the sums of a part, and for that part of all left blocks side by side: where
// they come from they lie a power of two apart, and the fastest caches hold only few such places at a time.
type partRoom struct {
	*vector.PartSums
	left []uint64 // first and second halves take turns
	next int      // words from one block to the next
}

// gatheredFor is from how many columns of blocks on left blocks are laid side by side: each of them reads all.
const gatheredFor = 4

func newPartRoom(size, inner, cols int, y Layout) *partRoom {
	room := &partRoom{PartSums: vector.NewPartSums(size, y.BlockInner*y.BlockCols, y.rowBlocks())}
	if cols >= gatheredFor {
		room.next = 2*size + 8 // no power of two
		room.left = takeWords(y.rowBlocks() * inner * room.next)
	}
	return room
}

// giveBack: what lies there are ciphertexts.
func (p *partRoom) giveBack() {
	if p.left != nil {
		giveWords(p.left)
	}
}

// gather lays this part of a term's left blocks side by side in `place`, and gives the place after them.
func (p *partRoom) gather(place []uint64, left *Ciphertext, count, at, length int) []uint64 {
	for b := range count {
		copy(place[b*p.next:], left.c0[b*length+at:][:p.Size])
		copy(place[b*p.next+p.Size:], left.c1[b*length+at:][:p.Size])
	}
	return place[count*p.next:]
}

// sumOfPart fills one part modulo the l-th modulus of the results in columns [from, to).
func (r *Ring) sumOfPart(
	c0, c1 []uint64, terms []Term, small []uint64, y Layout, from, to int, room *partRoom, l, part int,
) {
	m, length, at := r.arithmetic[l].(vector.Parted), r.Limbs*r.N, l*r.N+part*room.Size
	if room.left != nil {
		place := room.left
		for _, term := range terms {
			place = room.gather(place, term.Left, y.rowBlocks()*term.Right.layout.innerBlocks(), at, length)
		}
	}
	for col := from; col < to; col++ {
		room.Start(part)
		gathered := room.left
		for _, term := range terms {
			inner := term.Right.layout.innerBlocks()
			if gathered != nil {
				m.AddParts(room.PartSums, small, room.Size, gathered, gathered[room.Size:], room.next, inner)
				gathered = gathered[y.rowBlocks()*inner*room.next:]
			} else {
				m.AddParts(room.PartSums, small, room.Size, term.Left.c0[at:], term.Left.c1[at:], length, inner)
			}
			small = small[inner*room.Size:]
		}
		for row := range y.rowBlocks() {
			out := (row*y.colBlocks()+col)*length + at
			m.ReduceParts(c0[out:], c1[out:], room.PartSums, row)
		}
	}
}

// coefficients lays out one column of blocks, `size` coefficients each, which serve every modulus, and gives the
// place after them.
func (b *Right) coefficients(place []uint64, colBlock, size int) []uint64 {
	y, x, m := b.layout, b.source, b.ring.arithmetic[0].(vector.Parted)
	colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
	for innerBlock := range y.innerBlocks() {
		innerFrom, innerTo := span(innerBlock, y.BlockInner, y.Inner)
		block := place[:size]
		clear(block)
		for k := colFrom; k < colTo; k++ {
			for j := innerFrom; j < innerTo; j++ {
				row, col := j, k
				if b.transposed {
					row, col = k, j
				}
				block[y.right(j-innerFrom, k-colFrom)] = m.Small(int64(x.Data[row*x.Cols+col]))
			}
		}
		place = place[size:]
	}
	return place
}
