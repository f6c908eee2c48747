package main

/*
#include <stdint.h>
*/
import "C"

import (
	"atoll/core/ckks"
	"atoll/core/fault"
	"atoll/core/handle"
	"atoll/core/parallel"
)

// Ciphertexts with slots: what needs a secret, and what is made of the parties' parts.

//export atoll_ckks_secret
func atoll_ckks_secret(set, flags C.uint32_t, seed *C.uint8_t, seedSize C.uint64_t, id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		m, err := machine(set, flags)
		if err != nil {
			return err
		}
		secret, err := ckks.NewSecret(m, view(seed, seedSize))
		if err != nil {
			return err
		}
		return giveHandle(id, secret)
	})
}

//export atoll_ckks_key_part
func atoll_ckks_key_part(secret C.uint64_t, kind, step C.uint32_t, common *C.uint8_t, commonSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t,
	round1 *C.uint8_t, round1Size C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*ckks.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		return key.KeyPart(view(out, size), ckks.Kind(kind&255), int(step), view(common, commonSize), view(seed, seedSize), view(round1, round1Size))
	})
}

//export atoll_ckks_total
func atoll_ckks_total(set, flags C.uint32_t, parts **C.uint8_t, sizes *C.uint64_t, count C.uint64_t, out *C.uint8_t, size C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		id, err := setID(set)
		if err != nil {
			return err
		}
		return ckks.Total(id, views(parts, sizes, count), view(out, size), insecure(flags))
	})
}

// secretAnd is what most parts begin with: a secret, ciphertexts, and room for a message each.
func secretAnd(secret C.uint64_t, xs *C.uint64_t, count C.uint64_t, outs **C.uint8_t, sizes *C.uint64_t) (*ckks.Secret, []*ckks.Ciphertext, [][]byte, error) {
	key, err := handle.Get[*ckks.Secret](handle.ID(secret))
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := objects[*ckks.Ciphertext](words(xs, count))
	if err != nil {
		return nil, nil, nil, err
	}
	return key, list, views(outs, sizes, count), nil
}

// seeds are common seeds, one after the other.
func seeds(data []byte, count int) ([][]byte, error) {
	if len(data) != count*ckks.SeedBytes {
		return nil, fault.New(fault.Argument, "%d common seeds have %d bytes, not %d", count, count*ckks.SeedBytes, len(data))
	}
	list := make([][]byte, count)
	for i := range list {
		list[i] = data[i*ckks.SeedBytes : (i+1)*ckks.SeedBytes]
	}
	return list, nil
}

//export atoll_ckks_refresh_parts
func atoll_ckks_refresh_parts(secret C.uint64_t, xs *C.uint64_t, count C.uint64_t, commons *C.uint8_t, commonsSize C.uint64_t,
	seed *C.uint8_t, seedSize C.uint64_t, outs **C.uint8_t, sizes *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, list, room, err := secretAnd(secret, xs, count, outs, sizes)
		if err != nil {
			return err
		}
		common, err := seeds(view(commons, commonsSize), len(list))
		if err != nil {
			return err
		}
		from := view(seed, seedSize)
		return parallel.Run(len(list), func(_, i int) error { return key.RefreshPart(room[i], list[i], common[i], from) })
	})
}

//export atoll_ckks_refreshed
func atoll_ckks_refreshed(xs *C.uint64_t, count C.uint64_t, totals **C.uint8_t, sizes *C.uint64_t, commons *C.uint8_t, commonsSize C.uint64_t,
	parties C.uint32_t, ids *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		list, err := objects[*ckks.Ciphertext](words(xs, count))
		if err != nil {
			return err
		}
		common, err := seeds(view(commons, commonsSize), len(list))
		if err != nil {
			return err
		}
		parts := views(totals, sizes, count)
		return giveEach(ids, len(list), func(i int) (*ckks.Ciphertext, error) {
			return ckks.Refreshed(list[i], parts[i], common[i], int(parties))
		})
	})
}

//export atoll_ckks_opening_parts
func atoll_ckks_opening_parts(secret C.uint64_t, xs *C.uint64_t, kept *C.uint64_t, count C.uint64_t, flooding C.uint32_t,
	seed *C.uint8_t, seedSize C.uint64_t, outs **C.uint8_t, sizes *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, list, room, err := secretAnd(secret, xs, count, outs, sizes)
		if err != nil {
			return err
		}
		from, slots := view(seed, seedSize), words(kept, count)
		return parallel.Run(len(list), func(_, i int) error {
			return key.OpeningPart(room[i], list[i], from, int(flooding), int(slots[i]))
		})
	})
}

// atoll_ckks_opened writes `width` numbers of each ciphertext.
//
//export atoll_ckks_opened
func atoll_ckks_opened(xs *C.uint64_t, count C.uint64_t, totals **C.uint8_t, sizes *C.uint64_t, values *C.double, width C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		list, err := objects[*ckks.Ciphertext](words(xs, count))
		if err != nil {
			return err
		}
		parts, rows := views(totals, sizes, count), doubles(values, count*width)
		return parallel.Run(len(list), func(_, i int) error {
			return ckks.Opened(list[i], parts[i], rows[i*int(width):(i+1)*int(width)])
		})
	})
}

//export atoll_ckks_switching_parts
func atoll_ckks_switching_parts(secret C.uint64_t, xs *C.uint64_t, kept *C.uint64_t, count C.uint64_t, flooding C.uint32_t, common *C.uint8_t, commonSize C.uint64_t,
	public *C.uint8_t, publicSize C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t, outs **C.uint8_t, sizes *C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, list, room, err := secretAnd(secret, xs, count, outs, sizes)
		if err != nil {
			return err
		}
		receiver, err := ckks.NewReceiver(key.Machine(), view(common, commonSize), view(public, publicSize))
		if err != nil {
			return err
		}
		from, slots := view(seed, seedSize), words(kept, count)
		return parallel.Run(len(list), func(_, i int) error {
			return key.SwitchingPart(room[i], list[i], receiver, from, int(flooding), int(slots[i]))
		})
	})
}

//export atoll_ckks_switched
func atoll_ckks_switched(x C.uint64_t, total *C.uint8_t, totalSize C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		ciphertext, err := handle.Get[*ckks.Ciphertext](handle.ID(x))
		if err != nil {
			return err
		}
		return ckks.Switched(view(out, size), ciphertext, view(total, totalSize))
	})
}

//export atoll_ckks_read_switched
func atoll_ckks_read_switched(secret C.uint64_t, message *C.uint8_t, size C.uint64_t, values *C.double, width C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*ckks.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		return key.ReadSwitched(view(message, size), doubles(values, width))
	})
}

//export atoll_ckks_share_part
func atoll_ckks_share_part(secret, x C.uint64_t, seed *C.uint8_t, seedSize C.uint64_t, out *C.uint8_t, size C.uint64_t,
	shares *C.uint8_t, sharesSize C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, list, _, err := secretAnd(secret, &x, 1, nil, nil)
		if err != nil {
			return err
		}
		return key.SharePart(view(out, size), view(shares, sharesSize), list[0], view(seed, seedSize))
	})
}

//export atoll_ckks_public_share
func atoll_ckks_public_share(x C.uint64_t, total *C.uint8_t, totalSize C.uint64_t, parties C.uint32_t, shares *C.uint8_t, sharesSize C.uint64_t,
	problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		ciphertext, err := handle.Get[*ckks.Ciphertext](handle.ID(x))
		if err != nil {
			return err
		}
		return ckks.PublicShare(view(shares, sharesSize), ciphertext, view(total, totalSize), int(parties))
	})
}

//export atoll_ckks_input_part
func atoll_ckks_input_part(secret C.uint64_t, shares *C.uint8_t, sharesSize C.uint64_t, common *C.uint8_t, commonSize C.uint64_t,
	seed *C.uint8_t, seedSize C.uint64_t, out *C.uint8_t, size C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		key, err := handle.Get[*ckks.Secret](handle.ID(secret))
		if err != nil {
			return err
		}
		return key.InputPart(view(out, size), view(shares, sharesSize), view(common, commonSize), view(seed, seedSize))
	})
}

//export atoll_ckks_from_inputs
func atoll_ckks_from_inputs(set, flags C.uint32_t, total *C.uint8_t, totalSize C.uint64_t, common *C.uint8_t, commonSize C.uint64_t,
	id *C.uint64_t, problem *C.char, capacity C.uint64_t) C.int32_t {
	return guard(problem, capacity, func() error {
		m, err := machine(set, flags)
		if err != nil {
			return err
		}
		x, err := ckks.FromInputs(m, view(total, totalSize), view(common, commonSize))
		if err != nil {
			return err
		}
		return giveHandle(id, x)
	})
}
