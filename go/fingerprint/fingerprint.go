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

// #include "inner.h"
import "C"

import (
	"math/bits"
	"unsafe"

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
	// batch chunks are one step: for fewer, another core is not worth waking.
	batch = 1 << 8
	// An integer is cut into words of seven bytes: chunk products of 56 and 61 bits
	// add up to less than 2^125, which two registers hold.
	wordBytes = 7
	maxWords  = (MaxSize + wordBytes - 1) / wordBytes
	// readBeyond an integer are bytes of the eight that its last word is read with.
	readBeyond = 7
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
	err := parallel.Run((len(parts)+batch-1)/batch, func(_, step int) error {
		sums := new([maxWords]Pair[Wide])
		for i := step * batch; i < min((step+1)*batch, len(parts)); i++ {
			run, from := i/each, i%each*chunk
			parts[i] = part(data[(run*length+from)*size:], size, min(chunk, length-from), tables[run%len(tables)], sums)
		}
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

func (t *table) times(a, b uint64) uint64 { return times(a, b, t.p) }

// part is the pair of fingerprints of the first integers in data: word by word, so
// that sums stay in registers and are reduced once. `sums` is room for them.
func part(data []byte, size, count int, tables Pair[*table], sums *[maxWords]Pair[Wide]) (totals Pair[uint64]) {
	if len(data) < size*count+readBeyond {
		padded := make([]byte, size*count+readBeyond)
		copy(padded, data)
		data = padded
	}
	C.atoll_inner_words((*[4]C.uint64_t)(unsafe.Pointer(sums)), (*C.uint8_t)(&data[0]), C.size_t(size), C.size_t(count),
		(*C.uint64_t)(&tables[0].powers[0]), (*C.uint64_t)(&tables[1].powers[0]))
	for w := (size - 1) / wordBytes; w >= 0; w-- {
		for k, t := range tables {
			// The words above are worth 2^56.
			low, carry := bits.Add64(sums[w][k].Low, totals[k]<<(8*wordBytes), 0)
			high := sums[w][k].High + totals[k]>>(64-8*wordBytes) + carry
			totals[k] = bits.Rem64(high, low, t.p)
		}
	}
	return totals
}

// Wide is a number below 2^128.
type Wide struct{ Low, High uint64 }

// Inner is the sum of products x_j·y_j, and of x_j·z_j, over all of x; the caller sees
// to it that both stay below 2^128.
func Inner(x, y, z []uint64) (sums Pair[Wide]) {
	if len(x) > 0 {
		y, z = y[:len(x)], z[:len(x)]
		C.atoll_inner((*C.uint64_t)(unsafe.Pointer(&sums)), (*C.uint64_t)(&x[0]), C.size_t(len(x)),
			(*C.uint64_t)(&y[0]), (*C.uint64_t)(&z[0]))
	}
	return sums
}
