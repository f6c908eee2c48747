// Package fingerprint shortens long vectors to numbers that add as the vectors do.
//
// The fingerprint of x_0, x_1, ... at the point z is the sum of x_j·z^j modulo a
// prime p. It is linear, so a sum of vectors can be checked from the fingerprints
// of its parts. Two vectors of length L that differ modulo p have the same one at
// a random z with probability at most L/p: the difference is a polynomial with at
// most L roots. Fingerprints come in pairs, at two points drawn apart: (L/p)^2 is
// less than 2^-73 for the longest lattice keys (2^17 residues modulo a prime of 54
// bits, 2^18 modulo one of 56) and less than 2^-76 for a million integers modulo two
// primes of 61 bits. One point alone would leave 2^-36 and 2^-40.
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
	// MaxRows bounds how many rows take turns.
	MaxRows = 64

	// chunk integers share a table of powers and stay in the fastest cache.
	chunk = 1 << 8
	// An integer is cut into words of seven bytes: chunk products of 56 and 61 bits
	// add up to less than 2^125, which two registers hold.
	wordBytes = 7
)

// Point is where a fingerprint is taken. That the modulus is prime, and that z was
// drawn after the vectors were fixed, is for the caller to see to.
type Point struct{ Modulus, Z uint64 }

// Pair is the two points of one vector's fingerprints, or these themselves.
type Pair[T any] [2]T

// Evaluate gives the fingerprints of the little-endian integers of `size` bytes that
// stand one after another in data. With several points, several vectors take turns:
// `length` integers of the first, as many of the second, and so on, and over again.
func Evaluate(data []byte, size, length int, points []Pair[Point]) ([]Pair[uint64], error) {
	if err := check(data, size, length, points); err != nil {
		return nil, err
	}
	tables := make([]Pair[*table], len(points))
	for i, pair := range points {
		tables[i] = Pair[*table]{newTable(pair[0], length), newTable(pair[1], length)}
	}
	runs := 0 // a run is what stands together of one vector
	if length > 0 {
		runs = len(data) / (size * length)
	}
	each := (length + chunk - 1) / chunk
	parts := make([]Pair[uint64], runs*each)
	err := parallel.Run(len(parts), func(_, i int) error {
		run, from := i/each, i%each*chunk
		parts[i] = part(data[(run*length+from)*size:], size, min(chunk, length-from), tables[run%len(tables)])
		return nil
	})
	return join(parts, each, tables), err
}

func check(data []byte, size, length int, points []Pair[Point]) error {
	if size < 1 || size > MaxSize || len(points) < 1 || len(points) > MaxRows {
		return fault.New(fault.Argument, "fingerprints are of integers of at most %d bytes, in at most %d rows", MaxSize, MaxRows)
	}
	if length < 0 || length > len(data) || len(data) > 0 && (length == 0 || len(data)%(size*length*len(points)) != 0) {
		return fault.New(fault.Argument, "%d bytes are no %d rows of %d integers of %d bytes", len(data), len(points), length, size)
	}
	for _, pair := range points {
		for _, point := range pair {
			if point.Modulus < 3 || bits.Len64(point.Modulus) > MaxBits || point.Z >= point.Modulus {
				return fault.New(fault.Argument, "a fingerprint is made at a point below a modulus of at most %d bits", MaxBits)
			}
		}
	}
	return nil
}

// join adds up the parts, each a chunk further than the one before, and the runs of
// each vector; from the end, as Horner does.
func join(parts []Pair[uint64], each int, tables []Pair[*table]) []Pair[uint64] {
	values := make([]Pair[uint64], len(tables))
	for last := len(parts); last > 0; last -= each {
		run := parts[last-each : last]
		row := (last/each - 1) % len(tables)
		for k, t := range tables[row] {
			var sum uint64
			for i := each - 1; i >= 0; i-- {
				sum = (t.times(sum, t.step) + run[i][k]) % t.p
			}
			values[row][k] = (t.times(values[row][k], t.run) + sum) % t.p
		}
	}
	return values
}

// table holds what all parts share for one point.
type table struct {
	p      uint64
	powers [chunk]uint64 // of z
	step   uint64        // z^chunk: parts lie so far apart
	run    uint64        // z^length: runs lie so far apart
}

func newTable(point Point, length int) *table {
	t := &table{p: point.Modulus, step: 1, run: 1}
	for j := range t.powers {
		t.powers[j] = t.step
		t.step = t.times(t.step, point.Z)
	}
	for bit := bits.Len(uint(length)) - 1; bit >= 0; bit-- {
		t.run = t.times(t.run, t.run)
		if length>>bit&1 == 1 {
			t.run = t.times(t.run, point.Z)
		}
	}
	return t
}

// times is a·b modulo p, for a and b below p: then the high word is below p as well.
func (t *table) times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	_, rest := bits.Div64(high, low, t.p)
	return rest
}

// part is the pair of fingerprints of the first integers in data: word by word, so
// that sums stay in registers and are reduced once.
func part(data []byte, size, count int, tables Pair[*table]) (totals Pair[uint64]) {
	var room [chunk]uint64
	words := room[:count]
	for at := (size - 1) / wordBytes * wordBytes; at >= 0; at -= wordBytes {
		unpack(words, data[at:], size, uint64(1)<<(8*min(wordBytes, size-at))-1)
		for k, t := range tables {
			high, low := Inner(words, t.powers[:])
			// The words above are worth 2^56.
			low, carry := bits.Add64(low, totals[k]<<(8*wordBytes), 0)
			high += totals[k]>>(64-8*wordBytes) + carry
			totals[k] = bits.Rem64(high, low, t.p)
		}
	}
	return totals
}

// unpack reads a word at every `size` bytes: eight bytes, of which the mask keeps
// the word's.
func unpack(words []uint64, data []byte, size int, mask uint64) {
	whole := 0 // so many words have eight bytes to read
	if len(data) >= 8 {
		whole = min(len(words), (len(data)-8)/size+1)
	}
	at := 0
	for j := range words[:whole] {
		words[j] = binary.LittleEndian.Uint64(data[at:at+8]) & mask
		at += size
	}
	for j := whole; j < len(words); j++ {
		var last [8]byte
		copy(last[:], data[j*size:])
		words[j] = binary.LittleEndian.Uint64(last[:]) & mask
	}
}

// Inner is the sum of products x_j·y_j over all of x; the caller sees to it that it
// stays below 2^128.
func Inner(x, y []uint64) (high, low uint64) {
	y = y[:len(x)]
	for j := range x {
		h, l := bits.Mul64(x[j], y[j])
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	return high, low
}
