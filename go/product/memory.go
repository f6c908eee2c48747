package product

import "sync"

// Encoded matrices are large and short-lived: on Go's heap every one of them
// touches fresh pages, and the faults cost as much as the arithmetic. So large
// blocks lie outside the heap on huge pages and are used again.
const (
	keptBlock  = 128 << 10 // bytes; smaller ones are left to the heap
	pieces     = 64 << 10  // larger ones are multiples of this
	largeBlock = 4 << 20   // these lie outside the heap
	hugePage   = 2 << 20
	maxIdle    = 512 << 20 // bytes kept for the next one
)

var idle = struct {
	sync.Mutex
	blocks map[int][][]uint64 // by capacity
	bytes  int
}{blocks: map[int][][]uint64{}}

// takeWords returns n words with anything in them; give them back with
// giveWords when nobody uses them any more.
func takeWords(n int) []uint64 {
	unit, fresh := hugePage, mapWords
	switch {
	case n*8 < keptBlock:
		return make([]uint64, n)
	case n*8 < largeBlock:
		unit, fresh = pieces, func(n int) []uint64 { return make([]uint64, n) }
	}
	capacity := (n*8 + unit - 1) / unit * unit / 8
	if block := reuse(capacity); block != nil {
		return block[:n]
	}
	return fresh(capacity)[:n]
}

// reuse finds the smallest idle block that is large enough, unless it is far too large.
func reuse(capacity int) []uint64 {
	idle.Lock()
	defer idle.Unlock()
	best := 0
	for size, list := range idle.blocks {
		if len(list) > 0 && size >= capacity && size <= 3*capacity && (best == 0 || size < best) {
			best = size
		}
	}
	if best == 0 {
		return nil
	}
	list := idle.blocks[best]
	block := list[len(list)-1]
	idle.blocks[best] = list[:len(list)-1]
	idle.bytes -= best * 8
	return block
}

// wipeWords is giveWords for what held a secret, or what one follows from.
func wipeWords(block []uint64) {
	clear(block)
	giveWords(block)
}

func giveWords(block []uint64) {
	capacity := cap(block)
	if len(block)*8 < keptBlock {
		return
	}
	block = block[:capacity]
	idle.Lock()
	keep := idle.bytes+capacity*8 <= maxIdle
	if keep {
		idle.blocks[capacity] = append(idle.blocks[capacity], block)
		idle.bytes += capacity * 8
	}
	idle.Unlock()
	if !keep {
		unmapWords(block)
	}
}
