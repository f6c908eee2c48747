//go:build cgo && amd64

package sample

/*
#include "blocks.h"
*/
import "C"

import (
	"crypto/aes"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// blocksHere: this processor encrypts four blocks at once.
var blocksHere = cpu.X86.HasAES && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VAES

// blocks is the same key stream, some times as fast.
type blocks struct {
	key     [32]byte
	counter uint64
	last    [aes.BlockSize]byte
	left    []byte // of the last block
}

func newKeyStream(key [32]byte) keyStream {
	if !blocksHere {
		return newPortable(key)
	}
	return &blocks{key: key}
}

func (b *blocks) next(out []byte) {
	taken := copy(out, b.left)
	b.left, out = b.left[taken:], out[taken:]
	whole := len(out) / aes.BlockSize * aes.BlockSize
	b.fill(out[:whole])
	if whole < len(out) {
		b.fill(b.last[:])
		b.left = b.last[copy(out[whole:], b.last[:]):]
	}
}

func (b *blocks) fill(out []byte) {
	if len(out) == 0 {
		return
	}
	count := len(out) / aes.BlockSize
	C.atoll_blocks((*C.uint8_t)(unsafe.Pointer(&out[0])), C.size_t(count), (*C.uint8_t)(&b.key[0]), C.uint64_t(b.counter))
	b.counter += uint64(count)
}
