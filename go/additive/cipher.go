package additive

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

	"atoll/core/fault"
	"atoll/core/parallel"
)

const limbs = 3

// Encrypt writes a ciphertext of the planar values (limb l of value v stands at
// values[l·n + v]). With summands > 1 it refuses values that could overflow the
// 192-bit sum of that many.
func (key *PublicKey) Encrypt(values []uint64, summands int, seedBytes, out []byte) error {
	from, err := seedFrom(seedBytes)
	if err != nil {
		return err
	}
	if len(values) == 0 || len(values)%limbs != 0 {
		return fault.New(fault.Argument, "values come as %d limbs each, and there is at least one", limbs)
	}
	ctx := key.ctx
	h := header{kind: kindCiphertext, set: ctx.ID, width: key.width, count: 1, values: len(values) / limbs, key: key.id}
	if err := h.room(ctx, out); err != nil {
		return err
	}
	if err := ctx.headroom(values[2*h.values:], summands); err != nil {
		return err
	}
	// The seed is bound to the values: should a caller ever use it twice, two
	// different vectors still get independent randomness.
	digest := sha256.Sum256(bytesOf(values))
	from = derive(from, domainEncrypt, key.id[:], digest[:])
	e := &encryption{key: key, h: h, values: values, from: from, body: out[headerSize:]}
	if err := e.run(); err != nil {
		return err
	}
	h.write(out)
	return nil
}

func bytesOf(values []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 8*len(values))
}

// headroom refuses a top limb that does not leave the sum's carry bits free.
func (ctx *context) headroom(top []uint64, summands int) error {
	if summands < 1 || summands > ctx.MaxSummands {
		return fault.New(fault.Range, "%d summands are not between 1 and %d", summands, ctx.MaxSummands)
	}
	spare := bits.Len(uint(summands - 1))
	if ctx.Coefficients > 1 {
		spare = max(spare, residueSpare)
	}
	for _, limb := range top {
		// All spare bits must repeat the sign.
		if int64(limb)>>(63-spare) != int64(limb)>>63 {
			return fault.New(fault.Range, "a value leaves no headroom for a sum of %d", summands)
		}
	}
	return nil
}

// encryption is one running Encrypt.
type encryption struct {
	key    *PublicKey
	h      header
	values []uint64
	from   seed
	body   []byte
}

// run works through the c1 groups in batches: first the masks u of a batch, then
// all its polynomials, so that also a single group keeps every core busy.
func (e *encryption) run() error {
	ctx, groups := e.key.ctx, e.h.groups(e.key.ctx)
	batch := min(groups, 2*parallel.Workers(groups))
	masks, workers := ctx.take(batch), ctx.take(parallel.Workers(batch*(1+e.h.width)))
	defer ctx.put(masks)
	defer ctx.put(workers)
	for first := 0; first < groups; first += batch {
		count := min(batch, groups-first)
		err := parallel.Run(count, func(_, g int) error {
			e.mask(first+g, masks[g])
			return nil
		})
		if err != nil {
			return err
		}
		err = parallel.Run(count*(1+e.h.width), func(worker, step int) error {
			g, slot := step/(1+e.h.width), step%(1+e.h.width)
			e.polynomial(first+g, slot-1, masks[g].poly, workers[worker])
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mask draws u for one group and takes it to the NTT domain.
func (e *encryption) mask(group int, s *scratch) {
	ternary(derive(e.from, domainMask, number(group)), s)
	ctx := e.key.ctx
	ctx.residues(s.small, s.poly)
	for i, r := range ctx.rings {
		r.NTT(ctx.row(s.poly, i), ctx.row(s.poly, i))
	}
}

// polynomial writes c1 (slot -1) or c0 of the group's given slot.
func (e *encryption) polynomial(group, slot int, u poly, s *scratch) {
	ctx, factor := e.key.ctx, e.key.a
	from, to := 0, ctx.n
	out := e.body[group*ctx.n*ctx.CipherBytes:]
	if slot >= 0 {
		index := group*e.h.width + slot
		if index >= e.h.polynomials(ctx) {
			return
		}
		factor = e.key.b[slot]
		from, to = e.h.span(ctx, index)
		out = e.body[(e.h.groups(ctx)*ctx.n+from)*ctx.CipherBytes:]
	}
	for i, r := range ctx.rings {
		row := ctx.row(s.poly, i)
		r.MulCoeffsMontgomery(ctx.row(factor, i), ctx.row(u, i), row)
		r.INTT(row, row)
	}
	binomial(derive(e.from, domainError, number(group), number(slot+1)), s)
	ctx.addSmall(s.small, s.poly)
	size, n := ctx.CipherBytes, e.h.values
	whole := slot >= 0 && ctx.Coefficients == 1
	var blur []byte
	if slot >= 0 && ctx.blurs() {
		blur = s.stream[:8*(to-from)]
		expand(derive(e.from, domainBlur, number(group), number(slot)), blur)
	}
	at := residueSlot{v: from}
	if slot >= 0 && !whole {
		at = residueSlot{k: from / n, v: from % n}
	}
	for j := range to - from {
		t := ctx.turnOf(s.poly, j)
		if whole {
			v := from + j
			t.addValue(e.values[v], e.values[n+v], e.values[2*n+v])
		} else if slot >= 0 {
			if blur != nil && at.k > 0 {
				t.addBlur(binary.LittleEndian.Uint64(blur[8*j:]))
			}
			at.add(&t, e.values, n)
		}
		t.pack(out[j*size:], size)
	}
}

// Decrypt opens a ciphertext with the whole key into planar values.
func (key *SecretKey) Decrypt(message []byte, values []uint64, insecure bool) error {
	if !key.whole {
		return fault.New(fault.Argument, "one member's share does not open a ciphertext")
	}
	h, _, err := read(message, kindCiphertext, insecure)
	if err != nil {
		return err
	}
	if err := h.belongs(key.ctx, key.id, key.width); err != nil {
		return err
	}
	ctx := key.ctx
	place, err := newPlace(ctx, h, values)
	if err != nil {
		return err
	}
	c0 := message[headerSize+h.groups(ctx)*ctx.n*ctx.CipherBytes:]
	err = key.products(h, message[headerSize:], func(s *scratch, index int) error {
		from, to := h.span(ctx, index)
		for slot := from; slot < to; slot++ {
			t := ctx.turnOf(s.poly, slot-from)
			other := unpack(c0[slot*ctx.CipherBytes:], ctx.CipherBytes)
			t.add(&other)
			if !place.store(t, slot) {
				return errUnsound
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	place.recover()
	return nil
}

var errUnsound = fault.New(fault.Message, "the ciphertext does not open: it is no sum of ciphertexts under this key")

// residueSlot walks over the slots of residues: slot k·n + v holds residue k of value v.
type residueSlot struct{ k, v int }

// add adds the slot's residue and steps to the next slot.
func (at *residueSlot) add(t *turn, values []uint64, n int) {
	low, middle := values[at.v], values[n+at.v]
	if at.k == 0 {
		t.addLow(low, middle)
	} else {
		q := &moduli[at.k]
		t.addMultiple(residueOf(low, middle, values[2*n+at.v], q.below), &q.fraction)
	}
	if at.v++; at.v == n {
		at.k, at.v = at.k+1, 0
	}
}

// place is where opened values go.
type place struct {
	n      int
	values []uint64
	tops   []uint16 // the ten bits above the low limb's residue; nil when a coefficient holds a whole value
}

func newPlace(ctx *context, h header, values []uint64) (*place, error) {
	if len(values) != limbs*h.values {
		return nil, fault.New(fault.Argument, "%d values need %d limbs of room, not %d", h.values, limbs*h.values, len(values))
	}
	p := &place{n: h.values, values: values}
	if ctx.Coefficients > 1 {
		p.tops = make([]uint16, h.values)
	}
	return p, nil
}

// store rounds t into its slot and says whether it was close to a whole number.
func (p *place) store(t turn, slot int) (sound bool) {
	if p.tops == nil {
		p.values[slot], p.values[p.n+slot], p.values[2*p.n+slot], sound = t.value()
		return sound
	}
	if slot >= p.n {
		k := 1
		if slot >= 2*p.n {
			k = 2
		}
		p.values[slot], sound = t.residue(moduli[k].p)
		return sound
	}
	p.values[slot], p.tops[slot], sound = t.lowResidue()
	return sound
}

// recover puts values together from their residues.
func (p *place) recover() {
	if p.tops == nil {
		return
	}
	for v := range p.n {
		at := [limbs]int{v, p.n + v, 2*p.n + v}
		p.values[at[0]], p.values[at[1]], p.values[at[2]] =
			fromResidues(p.values[at[0]], p.tops[v], p.values[at[1]], p.values[at[2]])
	}
}

// products calls use with c1·s_j, as coefficients, for every polynomial.
func (key *SecretKey) products(h header, c1 []byte, use func(s *scratch, index int) error) error {
	ctx, groups := key.ctx, h.groups(key.ctx)
	batch := min(groups, 2*parallel.Workers(groups))
	lifted, workers := ctx.take(batch), ctx.take(parallel.Workers(batch*h.width))
	defer ctx.put(lifted)
	defer ctx.put(workers)
	bytes := ctx.n * ctx.CipherBytes
	for first := 0; first < groups; first += batch {
		count := min(batch, groups-first)
		err := parallel.Run(count, func(_, g int) error {
			p := lifted[g].poly
			ctx.residuesOf(c1[(first+g)*bytes:], p)
			for i, r := range ctx.rings {
				r.NTT(ctx.row(p, i), ctx.row(p, i))
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = parallel.Run(count*h.width, func(worker, step int) error {
			slot, index := step%h.width, first*h.width+step
			if index >= h.polynomials(ctx) {
				return nil
			}
			s := workers[worker]
			for i, r := range ctx.rings {
				row := ctx.row(s.poly, i)
				r.MulCoeffsMontgomery(ctx.row(lifted[step/h.width].poly, i), ctx.row(key.secret[slot], i), row)
				r.INTT(row, row)
			}
			return use(s, index)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Adder is a running sum of ciphertexts under one key.
type Adder struct {
	mutex    sync.Mutex
	ctx      *context
	insecure bool
	h        header
	message  []byte
	carries  []byte // how often each coefficient of a collective sum wrapped
	summed   int    // messages added so far
}

// maxCarried is how many messages may be added before a carry needs more than a byte.
const maxCarried = 256

// NewAdder starts with no summands; the first decides key and dimensions.
func NewAdder(insecure bool) *Adder { return &Adder{insecure: insecure} }

// Add takes one more ciphertext in. After an error the sum is as before.
func (a *Adder) Add(message []byte) error {
	h, ctx, err := read(message, kindCiphertext, a.insecure)
	if err != nil {
		return err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.ctx == nil {
		a.ctx, a.h, a.summed = ctx, h, 1
		a.message = append([]byte(nil), message...)
		if ctx.MaxMembers > 0 {
			a.carries = make([]byte, (len(message)-headerSize)/ctx.CipherBytes)
		}
		return nil
	}
	if err := h.belongs(a.ctx, a.h.key, a.h.width); err != nil {
		return err
	}
	if h.values != a.h.values {
		return fault.New(fault.Message, "a ciphertext of %d values does not add to one of %d", h.values, a.h.values)
	}
	sum := a.h
	if sum.count += h.count; sum.count > ctx.MaxSummands {
		return fault.New(fault.Range, "a sum of %d ciphertexts is beyond the limit of %d", sum.count, ctx.MaxSummands)
	}
	a.h = sum
	a.summed++
	return a.accumulate(message[headerSize:])
}

// accumulate adds the body's integers to ours, each modulo 2^(8·size).
func (a *Adder) accumulate(body []byte) error {
	const chunk = 4096
	ours, size := a.message[headerSize:], a.ctx.CipherBytes
	count := len(ours) / size
	return parallel.Run((count+chunk-1)/chunk, func(_, step int) error {
		from, to := step*chunk, min((step+1)*chunk, count)
		var carries []byte
		if a.carries != nil {
			carries = a.carries[from:to]
		}
		addIntegers(ours[from*size:to*size], body[from*size:to*size], carries, size)
		return nil
	})
}

func addIntegers(ours, theirs, carries []byte, size int) {
	whole, rest := size/8, uint(size%8)*8
	for at := 0; at < len(ours); at += size {
		x, y := ours[at:at+size], theirs[at:at+size]
		// The bytes above the whole words, read as the end of the last eight.
		top := binary.LittleEndian.Uint64(x[size-8:])>>(64-rest) + binary.LittleEndian.Uint64(y[size-8:])>>(64-rest)
		var carry, word uint64
		for w := range whole {
			word, carry = bits.Add64(binary.LittleEndian.Uint64(x[8*w:]), binary.LittleEndian.Uint64(y[8*w:]), carry)
			binary.LittleEndian.PutUint64(x[8*w:], word)
		}
		top += carry
		if carries != nil {
			carries[at/size] += byte(top >> rest)
		}
		binary.LittleEndian.PutUint64(x[size-8:], top<<(64-rest)|word>>rest)
	}
}

// Size is the length of the finished sum.
func (a *Adder) Size() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.message)
}

// Carries writes how often each coefficient of the sum wrapped, a byte each: with
// them the sum is one of integers, which others can check without the summands.
func (a *Adder) Carries(out []byte) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.carries == nil || a.summed > maxCarried {
		return fault.New(fault.Argument, "carries are kept for sums of at most %d under a collective key", maxCarried)
	}
	if len(out) != len(a.carries) {
		return fault.New(fault.Argument, "the carries need a buffer of %d bytes, not %d", len(a.carries), len(out))
	}
	copy(out, a.carries)
	return nil
}

// Finish writes the sum; more may be added afterwards.
func (a *Adder) Finish(out []byte) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.ctx == nil {
		return fault.New(fault.Argument, "nothing was added")
	}
	if len(out) != len(a.message) {
		return fault.New(fault.Argument, "the sum needs a buffer of %d bytes, not %d", len(a.message), len(out))
	}
	copy(out, a.message)
	a.h.write(out)
	return nil
}
