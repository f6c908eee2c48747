package main

/*
#include <stdint.h>
*/
import "C"

import (
	"encoding/json"
	"strings"
	"unsafe"

	"atoll/core/fault"
	"atoll/core/handle"
	"atoll/core/product"
	"atoll/core/vector"
)

// A matrix crosses as its words and a shape (rows, columns, words per integer), a
// layout as six sizes, the bounds of a clearing as five numbers.

func productRing(index C.uint32_t) (*product.Ring, error) {
	if int(index) >= len(product.Table) {
		return nil, fault.New(fault.Argument, "ring %d is not in the table", index)
	}
	return product.Get(product.Table[index].Name)
}

// sizes reads small non-negative numbers, so that no later product of them overflows.
func sizes(numbers *C.uint64_t, count int) ([]int, error) {
	given := words(numbers, C.uint64_t(count))
	if given == nil {
		return nil, fault.New(fault.Argument, "no sizes were given")
	}
	list := make([]int, count)
	for i, number := range given {
		if number > 1<<24 {
			return nil, fault.New(fault.Argument, "a size of %d makes no sense", number)
		}
		list[i] = int(number)
	}
	return list, nil
}

func productLayout(numbers *C.uint64_t) (product.Layout, error) {
	n, err := sizes(numbers, 6)
	if err != nil {
		return product.Layout{}, err
	}
	return product.Layout{Rows: n[0], Inner: n[1], Cols: n[2], BlockRows: n[3], BlockInner: n[4], BlockCols: n[5]}, nil
}

func productClearing(numbers *C.uint64_t) (product.Clearing, error) {
	n, err := sizes(numbers, 5)
	if err != nil {
		return product.Clearing{}, err
	}
	return product.Clearing{Parties: n[0], ValueBits: n[1], RightBits: n[2], Truncate: n[3], MaskBits: n[4]}, nil
}

// matrix is the caller's integers, or nil where it gave none.
func matrix(data *C.uint64_t, shape *C.uint64_t) (*product.Matrix, error) {
	if data == nil {
		return nil, nil
	}
	n, err := sizes(shape, 3)
	if err != nil {
		return nil, err
	}
	return product.View(n[0], n[1], n[2], words(data, C.uint64_t(n[0]*n[1]*n[2])))
}

func needMatrix(data *C.uint64_t, shape *C.uint64_t) (*product.Matrix, error) {
	m, err := matrix(data, shape)
	if err == nil && m == nil {
		err = fault.New(fault.Argument, "no matrix was given")
	}
	return m, err
}

// atoll_product_table copies the table of rings, as JSON, and gives its length;
// with too small a buffer it copies nothing and gives the length only.
//
//export atoll_product_table
func atoll_product_table(out *C.uint8_t, room C.uint64_t, length *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		type row struct {
			Name     string   `json:"name"`
			Family   string   `json:"family"`
			Degree   int      `json:"degree"`
			Limbs    int      `json:"limbs"`
			LogQ     float64  `json:"log_q"`
			MaxLogQ  float64  `json:"max_log_q"`
			Security int      `json:"security"`
			PolySize int      `json:"poly_size"`
			Moduli   []uint64 `json:"moduli"`
		}
		var rows []row
		for i, p := range product.Table {
			r, err := productRing(C.uint32_t(i))
			if err != nil {
				return err
			}
			rows = append(rows, row{p.Name, p.Family, r.N, r.Limbs, p.LogQ(), p.MaxLogQ, p.Security, r.PolySize(), p.Moduli})
		}
		table, err := json.Marshal(rows)
		if err != nil {
			return err
		}
		if uint64(room) >= uint64(len(table)) {
			copy(view(out, room), table)
		}
		return give(length, len(table))
	})
}

// atoll_vector_path copies the name of the path on which rings compute, and gives
// its length; it is an error if ATOLL_VECTOR asks for one that is not here.
//
//export atoll_vector_path
func atoll_vector_path(out *C.uint8_t, room C.uint64_t, length *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(0)
		if err != nil {
			return err
		}
		return give(length, copy(view(out, room), r.Path()))
	})
}

// atoll_vector_paths copies the names of all paths that this machine has, the
// fastest first, with commas between them.
//
//export atoll_vector_paths
func atoll_vector_paths(out *C.uint8_t, room C.uint64_t, length *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return give(length, copy(view(out, room), strings.Join(vector.Here(), ",")))
	})
}

//export atoll_product_noise_bits
func atoll_product_noise_bits(ring, parties, rightBits C.uint32_t, bits *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		return give(bits, r.NoiseBits(int(parties), int(rightBits)))
	})
}

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

// atoll_product_turned_right is the same for a matrix that is given column by column, its shape turned.
//
//export atoll_product_turned_right
func atoll_product_turned_right(ring C.uint32_t, data, shape *C.uint64_t, limit C.uint32_t, layout *C.uint64_t, id *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return giveRight(product.StreamTurned, ring, data, shape, limit, layout, id)
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

// atoll_product_sum_add takes in a product (kind 0) or a masked share (kind 1).
//
//export atoll_product_sum_add
func atoll_product_sum_add(id C.uint64_t, kind C.uint32_t, message *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		sum, err := handle.Get[*product.ProductSum](handle.ID(id))
		if err != nil {
			return err
		}
		if kind == 0 {
			return sum.Add(view(message, size))
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

//export atoll_product_fingerprint
func atoll_product_fingerprint(seed *C.uint8_t, seedSize C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		made, err := product.NewFingerprint(view(seed, seedSize))
		if err != nil {
			return err
		}
		return giveHandle(id, made)
	})
}

//export atoll_product_fingerprint_of
func atoll_product_fingerprint_of(id C.uint64_t, ring C.uint32_t, data *C.uint8_t, size, count C.uint64_t, out *C.uint64_t, outCount C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		f, err := handle.Get[*product.Fingerprint](handle.ID(id))
		if err != nil {
			return err
		}
		r, err := productRing(ring)
		if err != nil {
			return err
		}
		if count > 1<<30 {
			return fault.New(fault.Argument, "%d residues make no sense", count)
		}
		return f.Of(words(out, outCount), r, view(data, size), int(count))
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

// atoll_product_combine combines `count` matrices of one shape.
//
//export atoll_product_combine
func atoll_product_combine(data **C.uint64_t, count C.uint64_t, shape *C.uint64_t, coefficients *C.int64_t, shift C.uint32_t,
	out, outShape *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		if data == nil || coefficients == nil {
			return fault.New(fault.Argument, "no matrices were given")
		}
		var list []*product.Matrix
		for _, pointer := range unsafe.Slice(data, int(count)) {
			m, err := needMatrix(pointer, shape)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		result, err := needMatrix(out, outShape)
		if err != nil {
			return err
		}
		factors := unsafe.Slice((*int64)(unsafe.Pointer(coefficients)), int(count))
		return product.Combine(result, list, factors, int(shift))
	})
}

//export atoll_product_smudge
func atoll_product_smudge(data, shape *C.uint64_t, width C.uint32_t, seed *C.uint8_t, seedSize C.uint64_t,
	domain *C.uint8_t, domainSize C.uint64_t, out *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		x, err := needMatrix(data, shape)
		if err != nil {
			return err
		}
		result, err := needMatrix(out, shape)
		if err != nil {
			return err
		}
		return product.Smudge(result, x, int(width), view(seed, seedSize), view(domain, domainSize))
	})
}
