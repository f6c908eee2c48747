package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/digest"
	"atoll/core/fault"
)

// atoll_digest writes the digest of a message, digest.Size bytes.
//
//export atoll_digest
func atoll_digest(data *C.uint8_t, length C.uint64_t, out *C.uint8_t, room C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		if room != digest.Size {
			return fault.New(fault.Argument, "a digest has %d bytes", digest.Size)
		}
		found := digest.Sum(view(data, length))
		copy(view(out, room), found[:])
		return nil
	})
}
