package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/additive"
	"atoll/core/fault"
	"atoll/core/handle"
)

// allowInsecure is the flag with which tests may use insecure parameter sets.
const allowInsecure = 1

func insecure(flags C.uint32_t) bool { return flags&allowInsecure != 0 }

func setID(set C.uint32_t) (uint8, error) {
	if set > 255 {
		return 0, fault.New(fault.Argument, "parameter set %d is unknown", set)
	}
	return uint8(set), nil
}

func width(value C.uint32_t) (int, error) {
	if value < 1 || value > additive.MaxWidth {
		return 0, fault.New(fault.Argument, "a width of %d is not between 1 and %d", value, additive.MaxWidth)
	}
	return int(value), nil
}

// atoll_additive_table copies the parameter table, as JSON, and gives its length;
// with too small a buffer it copies nothing and gives the length only.
//
//export atoll_additive_table
func atoll_additive_table(out *C.uint8_t, room C.uint64_t, length *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		table := additive.Table()
		if uint64(room) >= uint64(len(table)) {
			copy(view(out, room), table)
		}
		return give(length, len(table))
	})
}

// atoll_additive_size gives the length of a message: facts are kind, set, width,
// count and values.
//
//export atoll_additive_size
func atoll_additive_size(facts *C.uint64_t, flags C.uint32_t, size *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		f := words(facts, 5)
		if f == nil {
			return fault.New(fault.Argument, "no dimensions were given")
		}
		bytes, err := additive.Size(additive.Facts{Kind: f[0], Set: f[1], Width: f[2], Count: f[3], Values: f[4]}, insecure(flags))
		if err != nil {
			return err
		}
		return give(size, bytes)
	})
}

// atoll_additive_inspect gives kind, set, width, count, values and size of a message.
//
//export atoll_additive_inspect
func atoll_additive_inspect(message *C.uint8_t, size C.uint64_t, flags C.uint32_t, facts *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		f := words(facts, 6)
		if f == nil {
			return fault.New(fault.Argument, "no place for the result was given")
		}
		found, err := additive.Inspect(view(message, size), insecure(flags))
		if err != nil {
			return err
		}
		copy(f, []uint64{found.Kind, found.Set, found.Width, found.Count, found.Values, found.Size})
		return nil
	})
}

//export atoll_additive_keygen
func atoll_additive_keygen(set, polynomials, flags C.uint32_t, seed *C.uint8_t, seedSize C.uint64_t,
	secret *C.uint8_t, secretSize C.uint64_t, public *C.uint8_t, publicSize C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		id, err := setID(set)
		if err != nil {
			return err
		}
		w, err := width(polynomials)
		if err != nil {
			return err
		}
		return additive.Keygen(id, w, view(seed, seedSize), view(secret, secretSize), view(public, publicSize), insecure(flags))
	})
}

//export atoll_additive_key_share
func atoll_additive_key_share(set, polynomials, flags C.uint32_t, reference *C.uint8_t, referenceSize C.uint64_t,
	seed *C.uint8_t, seedSize C.uint64_t, secret *C.uint8_t, secretSize C.uint64_t, share *C.uint8_t, shareSize C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		id, err := setID(set)
		if err != nil {
			return err
		}
		w, err := width(polynomials)
		if err != nil {
			return err
		}
		return additive.KeyShare(id, w, view(reference, referenceSize), view(seed, seedSize),
			view(secret, secretSize), view(share, shareSize), insecure(flags))
	})
}

//export atoll_additive_aggregate
func atoll_additive_aggregate(shares **C.uint8_t, sizes *C.uint64_t, count C.uint64_t, flags C.uint32_t,
	public *C.uint8_t, publicSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		return additive.Aggregate(views(shares, sizes, count), view(public, publicSize), insecure(flags))
	})
}

//export atoll_additive_open_public
func atoll_additive_open_public(message *C.uint8_t, size C.uint64_t, flags C.uint32_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := additive.OpenPublic(view(message, size), insecure(flags))
		if err != nil {
			return err
		}
		return giveHandle(id, key)
	})
}

//export atoll_additive_open_secret
func atoll_additive_open_secret(message *C.uint8_t, size C.uint64_t, flags C.uint32_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := additive.OpenSecret(view(message, size), insecure(flags))
		if err != nil {
			return err
		}
		return giveHandle(id, key)
	})
}

//export atoll_additive_encrypt
func atoll_additive_encrypt(public C.uint64_t, values *C.uint64_t, limbs C.uint64_t, summands C.uint32_t,
	seed *C.uint8_t, seedSize C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*additive.PublicKey](handle.ID(public))
		if err != nil {
			return err
		}
		return key.Encrypt(words(values, limbs), int(summands), view(seed, seedSize), view(out, size))
	})
}

//export atoll_additive_decrypt
func atoll_additive_decrypt(secret C.uint64_t, message *C.uint8_t, size C.uint64_t, flags C.uint32_t,
	values *C.uint64_t, limbs C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*additive.SecretKey](handle.ID(secret))
		if err != nil {
			return err
		}
		return key.Decrypt(view(message, size), words(values, limbs), insecure(flags))
	})
}

//export atoll_additive_decryption_share
func atoll_additive_decryption_share(secret, public C.uint64_t, message *C.uint8_t, size C.uint64_t,
	digest *C.uint8_t, digestSize C.uint64_t, flags C.uint32_t,
	share *C.uint8_t, shareSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		own, err := handle.Get[*additive.SecretKey](handle.ID(secret))
		if err != nil {
			return err
		}
		key, err := handle.Get[*additive.PublicKey](handle.ID(public))
		if err != nil {
			return err
		}
		return own.DecryptionShare(key, view(message, size), view(digest, digestSize), view(share, shareSize), insecure(flags))
	})
}

//export atoll_additive_combine
func atoll_additive_combine(public C.uint64_t, message *C.uint8_t, size C.uint64_t, shares **C.uint8_t, sizes *C.uint64_t, count C.uint64_t,
	flags C.uint32_t, values *C.uint64_t, limbs C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*additive.PublicKey](handle.ID(public))
		if err != nil {
			return err
		}
		return key.Combine(view(message, size), views(shares, sizes, count), words(values, limbs), insecure(flags))
	})
}

//export atoll_additive_adder
func atoll_additive_adder(flags C.uint32_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error { return giveHandle(id, additive.NewAdder(insecure(flags))) })
}

//export atoll_additive_adder_add
func atoll_additive_adder_add(adder C.uint64_t, message *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		running, err := handle.Get[*additive.Adder](handle.ID(adder))
		if err != nil {
			return err
		}
		return running.Add(view(message, size))
	})
}

//export atoll_additive_adder_size
func atoll_additive_adder_size(adder C.uint64_t, size *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		running, err := handle.Get[*additive.Adder](handle.ID(adder))
		if err != nil {
			return err
		}
		return give(size, running.Size())
	})
}

//export atoll_additive_adder_finish
func atoll_additive_adder_finish(adder C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		running, err := handle.Get[*additive.Adder](handle.ID(adder))
		if err != nil {
			return err
		}
		return running.Finish(view(out, size))
	})
}

//export atoll_additive_adder_carries
func atoll_additive_adder_carries(adder C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		running, err := handle.Get[*additive.Adder](handle.ID(adder))
		if err != nil {
			return err
		}
		return running.Carries(view(out, size))
	})
}
