package main

/*
#include <stdint.h>
*/
import "C"

import "atoll/core/group"

//export atoll_group_keygen
func atoll_group_keygen(seed *C.uint8_t, seedSize C.uint64_t, context *C.uint8_t, contextSize C.uint64_t,
	secret *C.uint8_t, secretSize C.uint64_t, public *C.uint8_t, publicSize C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Keygen(view(seed, seedSize), view(context, contextSize), view(secret, secretSize), view(public, publicSize))
	})
}

//export atoll_group_check_key
func atoll_group_check_key(public *C.uint8_t, publicSize C.uint64_t, context *C.uint8_t, contextSize C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.CheckKey(view(public, publicSize), view(context, contextSize))
	})
}

//export atoll_group_wrap
func atoll_group_wrap(keys **C.uint8_t, keySizes *C.uint64_t, keyCount C.uint64_t,
	pieces *C.uint8_t, piecesSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t,
	out *C.uint8_t, outSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Wrap(views(keys, keySizes, keyCount), view(pieces, piecesSize), view(seed, seedSize), view(out, outSize))
	})
}

//export atoll_group_strip
func atoll_group_strip(secret *C.uint8_t, secretSize C.uint64_t, keys **C.uint8_t, keySizes *C.uint64_t, keyCount C.uint64_t,
	items C.uint64_t, batch *C.uint8_t, batchSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t,
	out *C.uint8_t, outSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Strip(view(secret, secretSize), views(keys, keySizes, keyCount), int(items),
			view(batch, batchSize), view(seed, seedSize), view(out, outSize))
	})
}

//export atoll_group_read
func atoll_group_read(secret *C.uint8_t, secretSize C.uint64_t, batch *C.uint8_t, batchSize C.uint64_t,
	pieces *C.uint8_t, piecesSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Read(view(secret, secretSize), view(batch, batchSize), view(pieces, piecesSize))
	})
}

//export atoll_group_blind
func atoll_group_blind(seed *C.uint8_t, seedSize C.uint64_t, hashes *C.uint8_t, hashesSize C.uint64_t,
	out *C.uint8_t, outSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Blind(view(seed, seedSize), view(hashes, hashesSize), view(out, outSize))
	})
}

//export atoll_group_raise
func atoll_group_raise(seed *C.uint8_t, seedSize C.uint64_t, elements *C.uint8_t, elementsSize C.uint64_t,
	out *C.uint8_t, outSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return group.Raise(view(seed, seedSize), view(elements, elementsSize), view(out, outSize))
	})
}
