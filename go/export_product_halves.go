package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/handle"
	"atoll/core/product"
)

// Products of which the second halves are made before the left side is encrypted.

//export atoll_product_begin_ciphertext
func atoll_product_begin_ciphertext(ring C.uint32_t, layout *C.uint64_t, common *C.uint8_t, commonSize C.uint64_t,
	id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		begun, err := product.BeginCiphertext(r, y, view(common, commonSize))
		if err != nil {
			return err
		}
		return giveHandle(id, begun)
	})
}

//export atoll_product_complete_ciphertext
func atoll_product_complete_ciphertext(id C.uint64_t, first *C.uint8_t, firstSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		begun, err := handle.Get[*product.Ciphertext](handle.ID(id))
		if err != nil {
			return err
		}
		return begun.Complete(view(first, firstSize))
	})
}

//export atoll_product_second
func atoll_product_second(key C.uint64_t, lefts, rights *C.uint64_t, count C.uint64_t,
	seed *C.uint8_t, seedSize C.uint64_t, domain *C.uint8_t, domainSize C.uint64_t, out *C.uint8_t, size C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		public, err := handle.Get[*product.PublicKey](handle.ID(key))
		if err != nil {
			return err
		}
		terms, err := productTerms(words(lefts, count), words(rights, count))
		if err != nil {
			return err
		}
		return product.Second(view(out, size), public, terms, view(seed, seedSize), view(domain, domainSize))
	})
}

// atoll_product_refresh_ahead is atoll_product_refresh with the first half of the caller's own product, and with the
// second half of what all callers know.
//
//export atoll_product_refresh_ahead
func atoll_product_refresh_ahead(secret C.uint64_t, second *C.uint8_t, secondSize C.uint64_t,
	key C.uint64_t, lefts, rights *C.uint64_t, count C.uint64_t, publicLefts, publicRights *C.uint64_t, publicCount C.uint64_t,
	zeroSeed *C.uint8_t, zeroSeedSize C.uint64_t, zeroDomain *C.uint8_t, zeroDomainSize C.uint64_t,
	layout, clearing *C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t, domain *C.uint8_t, domainSize C.uint64_t,
	message *C.uint8_t, messageSize C.uint64_t, data, shape *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		own, err := handle.Get[*product.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		public, err := handle.Get[*product.PublicKey](handle.ID(key))
		if err != nil {
			return err
		}
		terms, err := productTerms(words(lefts, count), words(rights, count))
		if err != nil {
			return err
		}
		known, err := productTerms(words(publicLefts, publicCount), words(publicRights, publicCount))
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		c, err := productClearing(clearing)
		if err != nil {
			return err
		}
		share, err := needMatrix(data, shape)
		if err != nil {
			return err
		}
		ahead := &product.Ahead{
			Key: public, Terms: terms, Seed: view(zeroSeed, zeroSeedSize), Domain: view(zeroDomain, zeroDomainSize),
			Public: known,
		}
		return own.RefreshAhead(view(message, messageSize), share, view(second, secondSize), ahead, y, c,
			view(seed, seedSize), view(domain, domainSize))
	})
}
