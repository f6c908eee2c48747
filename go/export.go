// Command core is the shared library that Python loads: handles and byte
// buffers in, handles and byte buffers out. Only the export*.go files speak C.
//
// Every exported function returns a code (fault.Kind) and, unless that is zero,
// writes a sentence into the caller's `problem` buffer. The caller owns all
// memory: inputs are read during the call only, outputs are written into
// buffers that the caller sized beforehand.
package main

/*
#include <stdint.h>
*/
import "C"

import (
	"unsafe"

	"atoll/core/fault"
	"atoll/core/handle"
)

// abiVersion changes whenever an exported signature does; golib.py compares it.
const abiVersion = 6

func main() {}

// guard runs body so that neither an error nor a panic can pass it.
func guard(problem *C.char, capacity C.uint64_t, body func() error) (code C.int32_t) {
	defer func() {
		if cause := recover(); cause != nil {
			code = report(problem, capacity, fault.Recovered(cause))
		}
	}()
	return report(problem, capacity, body())
}

// report writes the error's sentence, cut to fit and ended by a zero byte.
func report(problem *C.char, capacity C.uint64_t, err error) C.int32_t {
	if err != nil && problem != nil && capacity > 0 {
		room := unsafe.Slice((*byte)(unsafe.Pointer(problem)), int(capacity))
		room[copy(room[:len(room)-1], err.Error())] = 0
	}
	return C.int32_t(fault.KindOf(err))
}

// view is the caller's buffer as a slice, valid during the call only.
func view(data *C.uint8_t, size C.uint64_t) []byte {
	if data == nil || size == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size))
}

// words is the caller's array of 64-bit words, valid during the call only.
func words(data *C.uint64_t, size C.uint64_t) []uint64 {
	if data == nil || size == 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(data)), int(size))
}

// views is a list of the caller's buffers, given by two arrays of equal length.
func views(data **C.uint8_t, sizes *C.uint64_t, count C.uint64_t) [][]byte {
	if data == nil || sizes == nil || count == 0 {
		return nil
	}
	pointers := unsafe.Slice(data, int(count))
	lengths := unsafe.Slice(sizes, int(count))
	list := make([][]byte, len(pointers))
	for i := range list {
		list[i] = view(pointers[i], lengths[i])
	}
	return list
}

// give writes a result where the caller asked for it.
func give(place *C.uint64_t, value int) error {
	if place == nil {
		return fault.New(fault.Argument, "no place for the result was given")
	}
	*place = C.uint64_t(value)
	return nil
}

// giveHandle stores an object and hands its handle to the caller.
func giveHandle(place *C.uint64_t, object any) error {
	if place == nil {
		return fault.New(fault.Argument, "no place for the handle was given")
	}
	*place = C.uint64_t(handle.Put(object))
	return nil
}

//export atoll_abi_version
func atoll_abi_version() C.int32_t { return abiVersion }

//export atoll_release
func atoll_release(id C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error { return handle.Close(handle.ID(id)) })
}

//export atoll_live_handles
func atoll_live_handles() C.uint64_t { return C.uint64_t(handle.Live()) }
