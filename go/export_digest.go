package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/fault"

	"github.com/zeebo/blake3"
)

const digestSize = 32

// atoll_digest writes the BLAKE3 digest of a message.
//
//export atoll_digest
func atoll_digest(data *C.uint8_t, length C.uint64_t, out *C.uint8_t, room C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		if room != digestSize {
			return fault.New(fault.Argument, "a digest has %d bytes", digestSize)
		}
		found := blake3.Sum256(view(data, length))
		copy(view(out, room), found[:])
		return nil
	})
}
