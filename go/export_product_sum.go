package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/handle"
	"atoll/core/product"
)

// Products with a matrix in the clear, and their sums.

//export atoll_product_right
func atoll_product_right(ring C.uint32_t, data, shape *C.uint64_t, limit C.uint32_t, layout *C.uint64_t, id *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return giveRight(product.EncodeRight, ring, data, shape, limit, layout, id)
	})
}

// atoll_product_streamed_right keeps the caller's integers, which must outlive the handle and not change.
//
//export atoll_product_streamed_right
func atoll_product_streamed_right(ring C.uint32_t, data, shape *C.uint64_t, limit C.uint32_t, layout *C.uint64_t, id *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return giveRight(product.StreamRight, ring, data, shape, limit, layout, id)
	})
}

// atoll_product_transposed_right is the same for a matrix that is given column by column, its shape transposed.
//
//export atoll_product_transposed_right
func atoll_product_transposed_right(ring C.uint32_t, data, shape *C.uint64_t, limit C.uint32_t, layout *C.uint64_t, id *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return giveRight(product.StreamTransposed, ring, data, shape, limit, layout, id)
	})
}

func giveRight(
	make func(*product.Ring, *product.Matrix, int, product.Layout) (*product.Right, error),
	ring C.uint32_t, data, shape *C.uint64_t, limit C.uint32_t, layout *C.uint64_t, id *C.uint64_t,
) error {
	r, err := productRing(ring)
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
	right, err := make(r, x, int(limit), y)
	if err != nil {
		return err
	}
	return giveHandle(id, right)
}

//export atoll_product_multiply
func atoll_product_multiply(key C.uint64_t, lefts, rights *C.uint64_t, count C.uint64_t, data, shape *C.uint64_t, limit C.uint32_t,
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
		plain, err := matrix(data, shape)
		if err != nil {
			return err
		}
		return product.Multiply(view(out, size), public, terms, plain, int(limit), view(seed, seedSize), view(domain, domainSize))
	})
}

func productTerms(lefts, rights []uint64) ([]product.Term, error) {
	terms := make([]product.Term, len(lefts))
	for i := range terms {
		left, err := handle.Get[*product.Ciphertext](handle.ID(lefts[i]))
		if err != nil {
			return nil, err
		}
		right, err := handle.Get[*product.Right](handle.ID(rights[i]))
		if err != nil {
			return nil, err
		}
		terms[i] = product.Term{Left: left, Right: right}
	}
	return terms, nil
}

//export atoll_product_sum
func atoll_product_sum(ring C.uint32_t, layout *C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		y, err := productLayout(layout)
		if err != nil {
			return err
		}
		sum, err := product.NewProductSum(r, y)
		if err != nil {
			return err
		}
		return giveHandle(id, sum)
	})
}

// atoll_product_sum_add takes in a product (kind 0), a masked share (kind 1) or second halves alone (kind 2).
//
//export atoll_product_sum_add
func atoll_product_sum_add(id C.uint64_t, kind C.uint32_t, message *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		sum, err := handle.Get[*product.ProductSum](handle.ID(id))
		if err != nil {
			return err
		}
		switch kind {
		case 0:
			return sum.Add(view(message, size))
		case 2:
			return sum.AddSecond(view(message, size))
		}
		return sum.AddShare(view(message, size))
	})
}

//export atoll_product_sum_second
func atoll_product_sum_second(id C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		sum, err := handle.Get[*product.ProductSum](handle.ID(id))
		if err != nil {
			return err
		}
		return sum.Second(view(out, size))
	})
}

//export atoll_product_sum_clear
func atoll_product_sum_clear(id C.uint64_t, clearing, data, shape *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		sum, err := handle.Get[*product.ProductSum](handle.ID(id))
		if err != nil {
			return err
		}
		c, err := productClearing(clearing)
		if err != nil {
			return err
		}
		out, err := needMatrix(data, shape)
		if err != nil {
			return err
		}
		return sum.Clear(out, c)
	})
}

// atoll_product_sum_total copies the masked values before they are truncated.
//
//export atoll_product_sum_total
func atoll_product_sum_total(id C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		sum, err := handle.Get[*product.ProductSum](handle.ID(id))
		if err != nil {
			return err
		}
		return sum.Total(view(out, size))
	})
}

//export atoll_product_clear_total
func atoll_product_clear_total(ring C.uint32_t, layout *C.uint64_t, total *C.uint8_t, size C.uint64_t, clearing, data, shape *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
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
		out, err := needMatrix(data, shape)
		if err != nil {
			return err
		}
		return product.ClearTotal(out, r, y, view(total, size), c)
	})
}
