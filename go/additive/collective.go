package additive

import (
	"crypto/sha256"
	"encoding/binary"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// digestSize is the length of the ciphertext's digest in a decryption share.
const digestSize = sha256.Size

// DecryptionShare writes this member's part in opening a ciphertext: c1·s_j plus
// smudging for every useful coefficient, cut to ShareBytes.
//
// The smudging is a function of the secret and of c1 alone. A second share for
// the same c1 with other smudging would let its reader average the smudging
// away, so there is none: the same call gives the same bytes.
//
// The digest is SHA-256 of the message, which callers have at hand because they
// compare it. It only tells the share's reader what the share is for: with a wrong
// one the share is refused.
func (key *SecretKey) DecryptionShare(public *PublicKey, message, digest, out []byte, insecure bool) error {
	if key.whole || key.ctx != public.ctx || key.width != public.width {
		return fault.New(fault.Key, "the secret share and the public key do not belong together")
	}
	member := public.memberOf(key.id)
	if member < 0 {
		return fault.New(fault.Key, "the secret share is no part of this public key")
	}
	h, _, err := read(message, kindCiphertext, insecure)
	if err != nil {
		return err
	}
	if err := h.belongs(public.ctx, public.id, public.width); err != nil {
		return err
	}
	ctx := key.ctx
	sh := header{kind: kindDecryptionShare, set: ctx.ID, width: h.width, count: member, values: h.values, key: h.key}
	if err := sh.room(ctx, out); err != nil {
		return err
	}
	if len(digest) != digestSize {
		return fault.New(fault.Argument, "a digest has %d bytes, not %d", digestSize, len(digest))
	}
	copy(out[headerSize:], digest)
	if err := key.smudged(h, message[headerSize:], out[headerSize+digestSize:]); err != nil {
		return err
	}
	sh.write(out)
	return nil
}

func (key *PublicKey) memberOf(id keyID) int {
	for i, member := range key.members {
		if member == id {
			return i
		}
	}
	return -1
}

// smudged writes the share's body.
func (key *SecretKey) smudged(h header, c1, out []byte) error {
	ctx := key.ctx
	digests := make([][sha256.Size]byte, h.groups(ctx))
	bytes := ctx.n * ctx.CipherBytes
	err := parallel.Run(len(digests), func(_, g int) error {
		digests[g] = sha256.Sum256(c1[g*bytes : (g+1)*bytes])
		return nil
	})
	if err != nil {
		return err
	}
	return key.products(h, c1, func(s *scratch, index int) error {
		expand(derive(key.seed, domainSmudge, digests[index/h.width][:], number(index%h.width)), s.stream)
		from, to := h.span(ctx, index)
		for slot := from; slot < to; slot++ {
			t := ctx.turnOf(s.poly, slot-from)
			noise := ctx.smudge(s.stream[16*(slot-from):])
			t.add(&noise)
			t.pack(out[slot*ctx.ShareBytes:], ctx.ShareBytes)
		}
		return nil
	})
}

// smudge is uniform on SmudgeBits bits of the ciphertext's grid, centred.
func (ctx *context) smudge(random []byte) (t turn) {
	low, high := binary.LittleEndian.Uint64(random), binary.LittleEndian.Uint64(random[8:])
	high &= 1<<(ctx.SmudgeBits-64) - 1
	// Centre: subtract half the range and extend the sign over all words.
	high -= 1 << (ctx.SmudgeBits - 65)
	sign := uint64(int64(high) >> 63)
	wide := [7]uint64{low, high, sign, sign, sign, sign, sign}
	shift := 384 - 8*ctx.CipherBytes
	for w := len(t) - 1; w >= shift/64; w-- {
		at := w - shift/64
		t[w] = wide[at] << (shift % 64)
		if at > 0 && shift%64 > 0 {
			t[w] |= wide[at-1] >> (64 - shift%64)
		}
	}
	return t
}

// Combine opens a ciphertext from the decryption shares of all members.
func (key *PublicKey) Combine(message []byte, shares [][]byte, values []uint64, insecure bool) error {
	h, ctx, err := read(message, kindCiphertext, insecure)
	if err != nil {
		return err
	}
	if err := h.belongs(key.ctx, key.id, key.width); err != nil {
		return err
	}
	place, err := newPlace(ctx, h, values)
	if err != nil {
		return err
	}
	if err := key.checkShares(h, message, shares, insecure); err != nil {
		return err
	}
	const chunk = 4096
	c0, slots := message[headerSize+h.groups(ctx)*ctx.n*ctx.CipherBytes:], h.slots(ctx)
	err = parallel.Run((slots+chunk-1)/chunk, func(_, step int) error {
		for slot := step * chunk; slot < min((step+1)*chunk, slots); slot++ {
			t := unpack(c0[slot*ctx.CipherBytes:], ctx.CipherBytes)
			for _, share := range shares {
				part := unpack(share[headerSize+digestSize+slot*ctx.ShareBytes:], ctx.ShareBytes)
				t.add(&part)
			}
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

// checkShares demands one share of every member, all for this very ciphertext.
func (key *PublicKey) checkShares(h header, message []byte, shares [][]byte, insecure bool) error {
	if len(shares) != len(key.members) {
		return fault.New(fault.Argument, "%d members need as many decryption shares, not %d", len(key.members), len(shares))
	}
	digest := sha256.Sum256(message)
	seen := make([]bool, len(shares))
	for _, share := range shares {
		sh, _, err := read(share, kindDecryptionShare, insecure)
		if err != nil {
			return err
		}
		if err := sh.belongs(key.ctx, key.id, key.width); err != nil {
			return err
		}
		if sh.values != h.values || string(share[headerSize:headerSize+digestSize]) != string(digest[:]) {
			return fault.New(fault.Message, "a decryption share was made for another ciphertext")
		}
		if sh.count >= len(shares) || seen[sh.count] {
			return fault.New(fault.Message, "two decryption shares name the same member, or one names none")
		}
		seen[sh.count] = true
	}
	return nil
}
