// Package fingerprint shortens long vectors to numbers that add as the vectors do.
//
// The fingerprint of x_0, x_1, ... at the point z is the sum of x_j·z^j modulo a
// prime p. It is linear, so a sum of vectors can be checked from the fingerprints
// of its parts. Two vectors of length L that differ modulo p have the same one at
// a random z with probability at most L/p: the difference is a polynomial with at
// most L roots. Fingerprints come in pairs, at two points of 60 bits or so, which
// makes that about 2^-80 for a million numbers.
package fingerprint

import (
	"encoding/binary"
	"math/bits"

	"atoll/core/fault"
	"atoll/core/parallel"
)

const (
	// MaxBits bounds a modulus.
	MaxBits = 61
	// MaxSize is the longest integer, in bytes.
	MaxSize = 64

	// chunk integers share a table of powers and stay in the fastest cache.
	chunk = 1 << 9
)

// Point is where a fingerprint is taken. That the modulus is prime, and that z was
// drawn after the vectors were fixed, is for the caller to see to.
type Point struct{ Modulus, Z uint64 }

// Evaluate is the pair of fingerprints of the little-endian integers of `size`
// bytes that stand one after another in data.
func Evaluate(data []byte, size int, points [2]Point) (values [2]uint64, err error) {
	if size < 1 || size > MaxSize || len(data)%size != 0 {
		return values, fault.New(fault.Argument, "%d bytes are no integers of %d bytes", len(data), size)
	}
	for _, point := range points {
		if point.Modulus < 3 || bits.Len64(point.Modulus) > MaxBits || point.Z >= point.Modulus {
			return values, fault.New(fault.Argument, "a fingerprint is made at a point below a modulus of at most %d bits", MaxBits)
		}
	}
	count := len(data) / size
	parts := make([][2]uint64, (count+chunk-1)/chunk)
	tables := [2]*table{newTable(points[0]), newTable(points[1])}
	err = parallel.Run(len(parts), func(_, i int) error {
		parts[i] = part(data[i*chunk*size:min((i+1)*chunk, count)*size], size, tables)
		return nil
	})
	for i := len(parts) - 1; i >= 0; i-- {
		for k, t := range tables {
			values[k] = (t.times(values[k], t.step) + parts[i][k]) % t.p
		}
	}
	return values, err
}

// table holds what all parts share for one point.
type table struct {
	p      uint64
	powers [chunk]uint64 // of z
	step   uint64        // z^chunk: parts lie so far apart
}

func newTable(point Point) *table {
	t := &table{p: point.Modulus, step: 1}
	for j := range t.powers {
		t.powers[j] = t.step
		t.step = t.times(t.step, point.Z)
	}
	return t
}

func (t *table) times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return bits.Rem64(high, low, t.p)
}

// wide is a sum of at most 512 products of 125 bits.
type wide struct{ high, middle, low uint64 }

func (w wide) modulo(p uint64) uint64 {
	return bits.Rem64(bits.Rem64(w.high, w.middle, p), w.low, p)
}

// part is the pair of fingerprints of one part: word by word, so that sums stay in
// registers and are reduced once.
func part(data []byte, size int, tables [2]*table) (totals [2]uint64) {
	for at := (size - 1) / 8 * 8; at >= 0; at -= 8 {
		var sums [2]wide
		// A word that is cut short is read as the end of eight bytes.
		shift := 64 - 8*min(8, size-at)
		if from := at - shift/8; from >= 0 {
			sums[0], sums[1] = column(data, size, from, uint(shift), tables)
		} else {
			sums[0], sums[1] = narrow(data, size, tables)
		}
		for k, t := range tables {
			totals[k] = (bits.Rem64(totals[k], 0, t.p) + sums[k].modulo(t.p)) % t.p
		}
	}
	return totals
}

// column adds up word·z^j, at both points, over the words that stand `from` bytes
// into their integers.
func column(data []byte, size, from int, shift uint, tables [2]*table) (first, second wide) {
	a, b := &tables[0].powers, &tables[1].powers
	var carry uint64
	for j := 0; from+8 <= len(data); j++ {
		word := binary.LittleEndian.Uint64(data[from:from+8]) >> (shift & 63)
		from += size
		h, l := bits.Mul64(word, a[j&(chunk-1)])
		first.low, carry = bits.Add64(first.low, l, 0)
		first.middle, carry = bits.Add64(first.middle, h, carry)
		first.high, _ = bits.Add64(first.high, 0, carry)
		h, l = bits.Mul64(word, b[j&(chunk-1)])
		second.low, carry = bits.Add64(second.low, l, 0)
		second.middle, carry = bits.Add64(second.middle, h, carry)
		second.high, _ = bits.Add64(second.high, 0, carry)
	}
	return first, second
}

// narrow is the same for integers of fewer than eight bytes: each is the start of
// an eight-byte word, but the last few, which are copied to where one can be read.
func narrow(data []byte, size int, tables [2]*table) (first, second wide) {
	mask, last := uint64(1)<<(8*size)-1, [16]byte{}
	whole := max(0, (len(data)-8)/size)
	a, b := &tables[0].powers, &tables[1].powers
	var carry uint64
	for j := range len(data) / size {
		from := data[j*size:]
		if j >= whole {
			clear(last[:])
			copy(last[:], from[:size])
			from = last[:]
		}
		word := binary.LittleEndian.Uint64(from) & mask
		h, l := bits.Mul64(word, a[j&(chunk-1)])
		first.low, carry = bits.Add64(first.low, l, 0)
		first.middle, carry = bits.Add64(first.middle, h, carry)
		first.high, _ = bits.Add64(first.high, 0, carry)
		h, l = bits.Mul64(word, b[j&(chunk-1)])
		second.low, carry = bits.Add64(second.low, l, 0)
		second.middle, carry = bits.Add64(second.middle, h, carry)
		second.high, _ = bits.Add64(second.high, 0, carry)
	}
	return first, second
}
