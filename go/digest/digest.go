// Package digest is BLAKE3, which hashes many pieces of a long message at once: on vectors some times as fast as
// SHA-256 by the processor's own instructions.
//
// A message is cut into chunks of 1,024 bytes. Their values are joined in pairs, and again, until one is left; an odd
// one waits for the next level.
package digest

// #include "digest.h"
import "C"

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	// Size is the length of a digest in bytes.
	Size = 32

	block = 64
	chunk = 1024
)

// What BLAKE3 calls its flags.
const (
	first  = 1
	last   = 2
	parent = 4
	root   = 8
)

// value is a chaining value, the lowest byte of each word first.
type value = [Size]byte

var start = func() (v value) {
	for i, word := range [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
		binary.LittleEndian.PutUint32(v[4*i:], word)
	}
	return v
}()

// Sum is the digest of a message.
func Sum(data []byte) [Size]byte { return sum(data, widest) }

func sum(data []byte, width int) value {
	if len(data) <= chunk {
		return single(data, 0, root)
	}
	whole := (len(data) - 1) / chunk // the last chunk, which may be short, is taken by itself
	level := many(data, whole, chunk, 0, width)
	level = append(level, single(data[whole*chunk:], whole, 0))
	for len(level) > 2 {
		pairs := len(level) / 2
		above := many(unsafe.Slice(&level[0][0], 2*pairs*Size), pairs, block, parent, width)
		if len(level)%2 == 1 {
			above = append(above, level[len(level)-1])
		}
		level = above
	}
	return joined(level[0], level[1])
}

// single is the value of one chunk.
func single(data []byte, number int, flags C.uint32_t) value {
	v, room := start, [block]byte{}
	begin := C.uint32_t(first)
	for len(data) > block {
		copy(room[:], data)
		compress(&v, &room, block, number, begin)
		data, begin = data[block:], 0
	}
	room = [block]byte{}
	compress(&v, &room, copy(room[:], data), number, begin|last|flags)
	return v
}

// joined is the digest, from the last two values.
func joined(left, right value) value {
	v, room := start, [block]byte{}
	copy(room[:], left[:])
	copy(room[Size:], right[:])
	compress(&v, &room, block, 0, parent|root)
	return v
}

func compress(v *value, data *[block]byte, size, number int, flags C.uint32_t) {
	C.atoll_digest_block((*C.uint8_t)(&v[0]), (*C.uint8_t)(&data[0]), C.uint32_t(size), C.uint64_t(number), flags)
}

// many gives the values of `count` inputs of `size` bytes each.
func many(data []byte, count, size, flags, width int) []value {
	out := make([]value, count, count+1)
	C.atoll_digest_many((*C.uint8_t)(&out[0][0]), (*C.uint8_t)(&data[0]), C.size_t(size), C.size_t(count),
		C.int(size/block), C.int(flags/parent), C.int(width))
	return out
}

// Widths of vectors, in words.
const (
	portable = 4
	avx2     = 8
	avx512   = 16
)

var widest = func() int {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX2:
		return avx512
	case cpu.X86.HasAVX2:
		return avx2
	}
	return portable
}()
