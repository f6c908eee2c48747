package main

/*
#include <stdint.h>
*/
import "C"

import (
	"unsafe"

	"atoll/core/ckks"
	"atoll/core/fault"
	"atoll/core/handle"
	"atoll/core/parallel"
)

// Ciphertexts with slots: what computes on them. Every operation takes lists, and
// does them on all cores.

// doubles is the caller's array of floating-point numbers, valid during the call only.
func doubles(data *C.double, size C.uint64_t) []float64 {
	if data == nil || size == 0 {
		return nil
	}
	return unsafe.Slice((*float64)(unsafe.Pointer(data)), int(size))
}

// objects are the things behind a list of handles.
func objects[T any](ids []uint64) ([]T, error) {
	list := make([]T, len(ids))
	for i, id := range ids {
		var err error
		if list[i], err = handle.Get[T](handle.ID(id)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// giveEach makes a list of objects side by side; either all become handles, or none.
func giveEach[T any](places *C.uint64_t, count int, make1 func(i int) (T, error)) error {
	out := words(places, C.uint64_t(count))
	if out == nil {
		return fault.New(fault.Argument, "no place for the handles was given")
	}
	made := make([]T, count)
	err := parallel.Run(count, func(_, i int) (err error) {
		made[i], err = make1(i)
		return err
	})
	if err != nil {
		return err
	}
	for i, object := range made {
		out[i] = uint64(handle.Put(object))
	}
	return nil
}

// withKeys is what most operations begin with: keys and a list of ciphertexts.
func withKeys(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t) (*ckks.Keys, []*ckks.Ciphertext, error) {
	k, err := handle.Get[*ckks.Keys](handle.ID(keys))
	if err != nil {
		return nil, nil, err
	}
	list, err := objects[*ckks.Ciphertext](words(xs, count))
	return k, list, err
}

func machine(set, flags C.uint32_t) (*ckks.Machine, error) {
	id, err := setID(set)
	if err != nil {
		return nil, err
	}
	return ckks.MachineOf(id, insecure(flags))
}

// atoll_ckks_table copies the parameter table, as JSON, as atoll_additive_table does.
//
//export atoll_ckks_table
func atoll_ckks_table(out *C.uint8_t, room C.uint64_t, length *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		table := ckks.Table()
		if uint64(room) >= uint64(len(table)) {
			copy(view(out, room), table)
		}
		return give(length, len(table))
	})
}

//export atoll_ckks_size
func atoll_ckks_size(set, flags, kind, level, step C.uint32_t, size *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		id, err := setID(set)
		if err != nil {
			return err
		}
		if kind > 255 {
			return fault.New(fault.Argument, "a message of kind %d is unknown", kind)
		}
		bytes, err := ckks.Size(id, ckks.Kind(kind), int(level), int(step), insecure(flags))
		if err != nil {
			return err
		}
		return give(size, bytes)
	})
}

// atoll_ckks_keys takes the totals of key parts in any order; their headers say what they are.
//
//export atoll_ckks_keys
func atoll_ckks_keys(set, flags C.uint32_t, common *C.uint8_t, commonSize C.uint64_t, totals **C.uint8_t, sizes *C.uint64_t, count C.uint64_t,
	id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		m, err := machine(set, flags)
		if err != nil {
			return err
		}
		sorted, err := ckks.SortTotals(views(totals, sizes, count))
		if err != nil {
			return err
		}
		keys, err := ckks.NewKeys(m, view(common, commonSize), sorted)
		if err != nil {
			return err
		}
		return giveHandle(id, keys)
	})
}

//export atoll_ckks_read
func atoll_ckks_read(set, flags C.uint32_t, messages **C.uint8_t, sizes *C.uint64_t, count C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		m, err := machine(set, flags)
		if err != nil {
			return err
		}
		list := views(messages, sizes, count)
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return ckks.ReadCiphertext(m, list[i]) })
	})
}

//export atoll_ckks_write
func atoll_ckks_write(id C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		x, err := handle.Get[*ckks.Ciphertext](handle.ID(id))
		if err != nil {
			return err
		}
		return x.Write(view(out, size))
	})
}

//export atoll_ckks_levels
func atoll_ckks_levels(ids *C.uint64_t, count C.uint64_t, levels *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		list, err := objects[*ckks.Ciphertext](words(ids, count))
		if err != nil {
			return err
		}
		out := words(levels, count)
		for i, x := range list {
			out[i] = uint64(x.Level())
		}
		return nil
	})
}

// atoll_ckks_encode prepares vectors of `width` numbers each for products at a level.
//
//export atoll_ckks_encode
func atoll_ckks_encode(set, flags C.uint32_t, values *C.double, count, width C.uint64_t, level C.uint32_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		m, err := machine(set, flags)
		if err != nil {
			return err
		}
		rows := doubles(values, count*width)
		return giveEach(ids, int(count), func(i int) (*ckks.Encoded, error) {
			return ckks.Encode(m, rows[i*int(width):(i+1)*int(width)], int(level))
		})
	})
}

//export atoll_ckks_encrypt
func atoll_ckks_encrypt(keys C.uint64_t, values *C.double, count, width C.uint64_t, level C.uint32_t,
	seed *C.uint8_t, seedSize C.uint64_t, ids *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, _, err := withKeys(keys, nil, 0)
		if err != nil {
			return err
		}
		rows, from := doubles(values, count*width), view(seed, seedSize)
		return giveEach(ids, int(count), func(i int) (*ckks.Ciphertext, error) {
			return k.Encrypt(rows[i*int(width):(i+1)*int(width)], int(level), from, i)
		})
	})
}

//export atoll_ckks_rerandomise
func atoll_ckks_rerandomise(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		from := view(seed, seedSize)
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Rerandomised(list[i], from, i) })
	})
}

//export atoll_ckks_lower
func atoll_ckks_lower(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, level C.uint32_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Lowered(list[i], int(level)) })
	})
}

//export atoll_ckks_scale
func atoll_ckks_scale(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, number C.double, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Scaled(list[i], float64(number)) })
	})
}

// atoll_ckks_rotate turns each ciphertext to the left by its own number of steps.
//
//export atoll_ckks_rotate
func atoll_ckks_rotate(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, steps *C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		by := words(steps, count)
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Rotated(list[i], int(by[i])) })
	})
}

//export atoll_ckks_plus
func atoll_ckks_plus(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, values *C.double, width C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		rows := doubles(values, count*width)
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) {
			return k.Plus(list[i], rows[i*int(width):(i+1)*int(width)])
		})
	})
}

//export atoll_ckks_subtract
func atoll_ckks_subtract(keys C.uint64_t, xs, ys *C.uint64_t, count C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		others, err := objects[*ckks.Ciphertext](words(ys, count))
		if err != nil {
			return err
		}
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Subtract(list[i], others[i]) })
	})
}

// starts are where each of several lists, written one after the other, begins; and their end.
func starts(lengths []uint64, total int) ([]int, error) {
	list := make([]int, len(lengths)+1)
	for i, length := range lengths {
		if length > uint64(total-list[i]) {
			return nil, fault.New(fault.Argument, "lists are longer than what was given")
		}
		list[i+1] = list[i] + int(length)
	}
	return list, nil
}

// atoll_ckks_sums adds up several lists, written one after the other.
//
//export atoll_ckks_sums
func atoll_ckks_sums(keys C.uint64_t, xs *C.uint64_t, total C.uint64_t, lengths *C.uint64_t, count C.uint64_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, total)
		if err != nil {
			return err
		}
		at, err := starts(words(lengths, count), len(list))
		if err != nil {
			return err
		}
		return giveEach(ids, int(count), func(i int) (*ckks.Ciphertext, error) { return k.Sum(list[at[i]:at[i+1]]) })
	})
}

// atoll_ckks_inner adds up products, several lists of them: what stands on the
// right is a ciphertext or an encoded vector.
//
//export atoll_ckks_inner
func atoll_ckks_inner(keys C.uint64_t, xs, ys *C.uint64_t, total C.uint64_t, lengths *C.uint64_t, count C.uint64_t, lazy C.uint32_t, ids *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, total)
		if err != nil {
			return err
		}
		others, err := objects[any](words(ys, total))
		if err != nil {
			return err
		}
		pairs := make([]ckks.Pair, len(list))
		for i, other := range others {
			pairs[i].Left = list[i]
			switch y := other.(type) {
			case *ckks.Ciphertext:
				pairs[i].Right.Secret = y
			case *ckks.Encoded:
				pairs[i].Right.Clear = y
			default:
				return fault.New(fault.Argument, "a %T is not a factor", y)
			}
		}
		at, err := starts(words(lengths, count), len(list))
		if err != nil {
			return err
		}
		return giveEach(ids, int(count), func(i int) (*ckks.Ciphertext, error) { return k.Inner(pairs[at[i]:at[i+1]], lazy != 0) })
	})
}

//export atoll_ckks_polynomial
func atoll_ckks_polynomial(keys C.uint64_t, xs *C.uint64_t, count C.uint64_t, coefficients *C.double, terms C.uint64_t, low, high C.double,
	ids *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		k, list, err := withKeys(keys, xs, count)
		if err != nil {
			return err
		}
		series := ckks.Chebyshev{Low: float64(low), High: float64(high), Coefficients: doubles(coefficients, terms)}
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) { return k.Polynomial(list[i], series) })
	})
}
