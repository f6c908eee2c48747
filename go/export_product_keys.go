package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/handle"
	"atoll/core/product"
)

// Keys, encryption and the refresh: what needs a secret, and what is made of ciphertexts' halves.

//export atoll_product_secret
func atoll_product_secret(ring C.uint32_t, seed *C.uint8_t, seedSize C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		secret, err := product.NewSecret(r, view(seed, seedSize))
		if err != nil {
			return err
		}
		return giveHandle(id, secret)
	})
}

//export atoll_product_key_share
func atoll_product_key_share(secret C.uint64_t, common *C.uint8_t, commonSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t,
	out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*product.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		return key.PublicKeyShare(view(out, size), view(common, commonSize), view(seed, seedSize))
	})
}

//export atoll_product_public_key
func atoll_product_public_key(ring C.uint32_t, shares **C.uint8_t, lengths *C.uint64_t, count C.uint64_t,
	common *C.uint8_t, commonSize C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		key, err := product.NewPublicKey(r, views(shares, lengths, count), view(common, commonSize))
		if err != nil {
			return err
		}
		return giveHandle(id, key)
	})
}

//export atoll_product_key_bytes
func atoll_product_key_bytes(key C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		public, err := handle.Get[*product.PublicKey](handle.ID(key))
		if err != nil {
			return err
		}
		return public.Write(view(out, size))
	})
}

//export atoll_product_encrypt
func atoll_product_encrypt(secret C.uint64_t, data, shape *C.uint64_t, limit, shift C.uint32_t, layout *C.uint64_t,
	common *C.uint8_t, commonSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t,
	out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*product.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		x, err := needMatrix(data, shape)
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		return key.Encrypt(view(out, size), x, int(limit), int(shift), y, view(common, commonSize), view(seed, seedSize))
	})
}

//export atoll_product_assemble
func atoll_product_assemble(ring C.uint32_t, data, shape *C.uint64_t, shift C.uint32_t, layout *C.uint64_t,
	parts **C.uint8_t, lengths *C.uint64_t, count C.uint64_t, out *C.uint8_t, size C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		public, err := matrix(data, shape)
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		return product.Assemble(view(out, size), r, public, int(shift), y, views(parts, lengths, count))
	})
}

//export atoll_product_ciphertext
func atoll_product_ciphertext(ring C.uint32_t, layout *C.uint64_t, first *C.uint8_t, firstSize C.uint64_t,
	common *C.uint8_t, commonSize C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		ciphertext, err := product.NewCiphertext(r, y, view(first, firstSize), view(common, commonSize))
		if err != nil {
			return err
		}
		return giveHandle(id, ciphertext)
	})
}

//export atoll_product_refresh
func atoll_product_refresh(secret C.uint64_t, second *C.uint8_t, secondSize C.uint64_t, layout, clearing *C.uint64_t,
	seed *C.uint8_t, seedSize C.uint64_t, domain *C.uint8_t, domainSize C.uint64_t,
	message *C.uint8_t, messageSize C.uint64_t, data, shape *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*product.Secret](handle.ID(secret))
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
		return key.Refresh(view(message, messageSize), share, view(second, secondSize), y, c,
			view(seed, seedSize), view(domain, domainSize))
	})
}
