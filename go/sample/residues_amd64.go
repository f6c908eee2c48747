//go:build cgo

package sample

/*
#include "residues.h"
*/
import "C"

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// residuesHere: this processor counts the ones of eight words at once.
var residuesHere = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPOPCNTDQ

func place(words []uint64) *C.uint64_t { return (*C.uint64_t)(unsafe.Pointer(&words[0])) }

func fits(poly, moduli []uint64) bool {
	return residuesHere && len(poly) > 0 && len(poly)%(8*len(moduli)) == 0
}

func binomialsFast(poly, moduli []uint64) bool {
	if !fits(poly, moduli) {
		return false
	}
	C.atoll_binomials(place(poly), C.int(len(poly)/len(moduli)), place(moduli), C.int(len(moduli)))
	return true
}

func ternariesFast(poly, moduli []uint64) bool {
	if !fits(poly, moduli) {
		return false
	}
	C.atoll_ternaries(place(poly), C.int(len(poly)/len(moduli)), place(moduli), C.int(len(moduli)))
	return true
}

func uppersFast(words []uint64, q uint64) (below, can bool) {
	if !fits(words, []uint64{q}) {
		return false, false
	}
	return C.atoll_uppers(place(words), C.int(len(words)), C.uint64_t(q)) == 0, true
}
