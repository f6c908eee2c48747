package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/fault"
	"atoll/core/fingerprint"
)

// atoll_fingerprint gives the sums of x_j·z^j over integers of `size` bytes, modulo
// two primes: points are modulus and z of each.
//
//export atoll_fingerprint
func atoll_fingerprint(data *C.uint8_t, length, size C.uint64_t, points, values *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		at, place := words(points, 4), words(values, 2)
		if at == nil || place == nil {
			return fault.New(fault.Argument, "no points or no place for the result were given")
		}
		both := [2]fingerprint.Point{{Modulus: at[0], Z: at[1]}, {Modulus: at[2], Z: at[3]}}
		found, err := fingerprint.Evaluate(view(data, length), int(min(size, fingerprint.MaxSize+1)), both)
		copy(place, found[:])
		return err
	})
}
