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
// layout as six sizes and whether it is one of entries (0 or 1), the bounds of a clearing as five numbers.

func productRow(index C.uint32_t) (product.Parameters, error) {
	if int(index) >= len(product.Table) {
		return product.Parameters{}, fault.New(fault.Argument, "ring %d is not in the table", index)
	}
	return product.Table[index], nil
}

func productRing(index C.uint32_t) (*product.Ring, error) {
	row, err := productRow(index)
	if err != nil {
		return nil, err
	}
	return product.Get(row.Name)
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
	n, err := sizes(numbers, 7)
	if err != nil {
		return product.Layout{}, err
	}
	if n[6] > 1 {
		return product.Layout{}, fault.New(fault.Argument, "there is no layout of kind %d", n[6])
	}
	return product.Layout{
		Rows: n[0], Inner: n[1], Cols: n[2], BlockRows: n[3], BlockInner: n[4], BlockCols: n[5], Entrywise: n[6] == 1,
	}, nil
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

// atoll_product_table copies the table of rings, and the limits that hold for all
// of them, as JSON, and gives its length; with too small a buffer it copies
// nothing and gives the length only.
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
		for _, p := range product.Table {
			rows = append(rows, row{p.Name, p.Family, p.Degree(), len(p.Moduli), p.LogQ(), p.MaxLogQ, p.Security, p.PolySize(), p.Moduli})
		}
		table, err := json.Marshal(map[string]any{"rings": rows, "limits": product.AllLimits()})
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
		path, err := product.ChosenPath()
		if err != nil {
			return err
		}
		return give(length, copy(view(out, room), path))
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
		row, err := productRow(ring)
		if err != nil {
			return err
		}
		return give(bits, row.NoiseBits(int(parties), int(rightBits)))
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
