package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/fault"
	"atoll/core/fingerprint"
)

// atoll_fingerprint gives the sums of x_j·z^j over integers of `size` bytes, two for
// each of `rows` vectors that take turns, `count` integers at a time. Points are two
// times modulus and z for each row, values the two sums of each.
//
//export atoll_fingerprint
func atoll_fingerprint(data *C.uint8_t, length, size, count, rows C.uint64_t, points, values *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		if rows > fingerprint.MaxRows || size > fingerprint.MaxSize || count > length {
			return fault.New(fault.Argument, "%d rows of %d integers of %d bytes are too many", rows, count, size)
		}
		at, place := words(points, 4*rows), words(values, 2*rows)
		if at == nil || place == nil {
			return fault.New(fault.Argument, "no points or no place for the result were given")
		}
		pairs := make([]fingerprint.Pair[fingerprint.Point], rows)
		for i := range pairs {
			pairs[i] = fingerprint.Pair[fingerprint.Point]{{Modulus: at[4*i], Z: at[4*i+1]}, {Modulus: at[4*i+2], Z: at[4*i+3]}}
		}
		found, err := fingerprint.Evaluate(view(data, length), int(size), int(count), pairs)
		for i, pair := range found {
			copy(place[2*i:], pair[:])
		}
		return err
	})
}

// atoll_fingerprint_prime gives the first prime among the candidates.
//
//export atoll_fingerprint_prime
func atoll_fingerprint_prime(candidates *C.uint64_t, count C.uint64_t, prime *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		place := words(prime, 1)
		if place == nil {
			return fault.New(fault.Argument, "no place for the prime was given")
		}
		found, err := fingerprint.FirstPrime(words(candidates, count))
		place[0] = found
		return err
	})
}
