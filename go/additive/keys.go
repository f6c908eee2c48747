package additive

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// PublicKey encrypts; for a collective key it also knows its members.
type PublicKey struct {
	ctx     *context
	id      keyID
	width   int
	members []keyID
	a       poly // NTT domain, Montgomery form, as are the b_j
	b       []poly
}

// SecretKey decrypts: the whole key, or one member's share of it.
type SecretKey struct {
	ctx    *context
	id     keyID // of the public key; for a share, of the key share
	width  int
	whole  bool
	seed   seed
	secret []poly // NTT domain, Montgomery form
}

// String shows the type only: nothing of a secret gets into a log.
func (k *SecretKey) String() string { return "additive.SecretKey" }

// GoString is String.
func (k *SecretKey) GoString() string { return k.String() }

// Keygen makes the key pair of a single holder from a seed.
func Keygen(set uint8, width int, seedBytes, secret, public []byte, insecure bool) error {
	ctx, err := contextOf(set, insecure)
	if err != nil {
		return err
	}
	from, err := seedFrom(seedBytes)
	if err != nil {
		return err
	}
	sh := header{kind: kindSecretKey, set: set, width: width}
	ph := header{kind: kindPublicKey, set: set, width: width}
	if err := firstError(sh.room(ctx, secret), ph.room(ctx, public)); err != nil {
		return err
	}
	reference := derive(from, domainReference)
	copy(public[headerSize:], reference[:])
	if err := ctx.halves(from, reference, width, public[headerSize+SeedBytes:]); err != nil {
		return err
	}
	ph.key = identify(ph, public[headerSize:])
	sh.key = ph.key
	ph.write(public)
	writeSecret(sh, from, secret)
	return nil
}

// KeyShare makes one member's secret share and public key share; all members
// use the same reference, drawn jointly and once.
func KeyShare(set uint8, width int, referenceBytes, seedBytes, secret, share []byte, insecure bool) error {
	ctx, err := contextOf(set, insecure)
	if err != nil {
		return err
	}
	from, err := seedFrom(seedBytes)
	if err != nil {
		return err
	}
	reference, err := seedFrom(referenceBytes)
	if err != nil {
		return err
	}
	sh := header{kind: kindSecretShare, set: set, width: width}
	kh := header{kind: kindKeyShare, set: set, width: width}
	if err := firstError(sh.room(ctx, secret), kh.room(ctx, share)); err != nil {
		return err
	}
	copy(share[headerSize:], reference[:])
	if err := ctx.halves(from, reference, width, share[headerSize+SeedBytes:]); err != nil {
		return err
	}
	kh.key = identify(kh, share[headerSize:])
	sh.key = kh.key
	kh.write(share)
	writeSecret(sh, from, secret)
	return nil
}

// Aggregate adds all members' key shares into the collective public key.
func Aggregate(shares [][]byte, public []byte, insecure bool) error {
	if len(shares) == 0 {
		return fault.New(fault.Argument, "no key shares were given")
	}
	first, ctx, err := read(shares[0], kindKeyShare, insecure)
	if err != nil {
		return err
	}
	ph := header{kind: kindPublicKey, set: first.set, width: first.width, count: len(shares)}
	if err := ph.room(ctx, public); err != nil {
		return err
	}
	body := public[headerSize:]
	copy(body, shares[0][headerSize:headerSize+SeedBytes])
	sums := make([]poly, first.width)
	for j := range sums {
		sums[j] = ctx.newPoly()
	}
	seen := map[keyID]bool{}
	for i, share := range shares {
		h, err := ctx.addKeyShare(share, first, body[:SeedBytes], sums, insecure)
		if err != nil {
			return err
		}
		if seen[h.key] {
			return fault.New(fault.Message, "the same key share was given twice")
		}
		seen[h.key] = true
		copy(body[SeedBytes+i*keyIDSize:], h.key[:])
	}
	polynomials := body[SeedBytes+len(shares)*keyIDSize:]
	for j, sum := range sums {
		ctx.packResidues(sum, polynomials[j*ctx.polyBytes():])
	}
	ph.key = identify(ph, body)
	ph.write(public)
	return nil
}

func (ctx *context) addKeyShare(share []byte, first header, reference []byte, sums []poly, insecure bool) (header, error) {
	h, _, err := read(share, kindKeyShare, insecure)
	if err != nil {
		return h, err
	}
	body := share[headerSize:]
	if h.set != first.set || h.width != first.width || string(body[:SeedBytes]) != string(reference) {
		return h, fault.New(fault.Key, "the key shares were made for different parameters or references")
	}
	if h.key != identify(h, body) {
		return h, fault.New(fault.Message, "a key share does not match its id")
	}
	part := ctx.newPoly()
	for j, sum := range sums {
		if err := ctx.unpackResidues(body[SeedBytes+j*ctx.polyBytes():], part); err != nil {
			return h, err
		}
		for i, r := range ctx.rings {
			r.Add(ctx.row(sum, i), ctx.row(part, i), ctx.row(sum, i))
		}
	}
	return h, nil
}

// OpenPublic checks a public key and makes it ready to encrypt.
func OpenPublic(message []byte, insecure bool) (*PublicKey, error) {
	h, ctx, err := read(message, kindPublicKey, insecure)
	if err != nil {
		return nil, err
	}
	body := message[headerSize:]
	if h.key != identify(h, body) {
		return nil, fault.New(fault.Message, "the public key does not match its id")
	}
	key := &PublicKey{ctx: ctx, id: h.key, width: h.width, members: make([]keyID, h.count)}
	for i := range key.members {
		copy(key.members[i][:], body[SeedBytes+i*keyIDSize:])
	}
	reference := seed(body[:SeedBytes])
	key.a = slices.Clone(ctx.common(reference))
	ctx.montgomery(key.a)
	polynomials := body[SeedBytes+h.count*keyIDSize:]
	for j := range h.width {
		b := ctx.newPoly()
		if err := ctx.unpackResidues(polynomials[j*ctx.polyBytes():], b); err != nil {
			return nil, err
		}
		ctx.montgomery(b)
		key.b = append(key.b, b)
	}
	return key, nil
}

// OpenSecret expands a secret key or a secret share.
func OpenSecret(message []byte, insecure bool) (*SecretKey, error) {
	want := kindSecretKey
	if len(message) > 1 && kind(message[1]) == kindSecretShare {
		want = kindSecretShare
	}
	h, ctx, err := read(message, want, insecure)
	if err != nil {
		return nil, err
	}
	key := &SecretKey{ctx: ctx, id: h.key, width: h.width, whole: want == kindSecretKey}
	copy(key.seed[:], message[headerSize:])
	key.secret = make([]poly, h.width)
	scratches := ctx.take(parallel.Workers(h.width))
	defer ctx.put(scratches)
	err = parallel.Run(h.width, func(worker, j int) error {
		key.secret[j] = ctx.newPoly()
		ctx.expandSecret(key.seed, j, scratches[worker], key.secret[j])
		return nil
	})
	return key, err
}

// halves writes b_j = -a·s_j + e'_j in the NTT domain for every j < width.
func (ctx *context) halves(from, reference seed, width int, out []byte) error {
	a := ctx.common(reference)
	scratches := ctx.take(parallel.Workers(width))
	defer ctx.put(scratches)
	return parallel.Run(width, func(worker, j int) error {
		s := scratches[worker]
		secret := ctx.newPoly()
		defer clear(secret)
		ctx.expandSecret(from, j, s, secret)
		binomial(derive(from, domainKeyError, number(j)), s)
		ctx.residues(s.small, s.poly)
		for i, r := range ctx.rings {
			row := ctx.row(s.poly, i)
			r.NTT(row, row)
			r.MulCoeffsMontgomeryThenSub(ctx.row(a, i), ctx.row(secret, i), row)
		}
		ctx.packResidues(s.poly, out[j*ctx.polyBytes():])
		return nil
	})
}

func (ctx *context) expandSecret(from seed, j int, s *scratch, out poly) {
	ternary(derive(from, domainSecret, number(j)), s)
	ctx.transform(s.small, out)
}

// common expands the common polynomial a from the reference. It is public, and asked
// for again when the key is opened that a share was made for: the last one is kept.
// Callers do not write to it.
func (ctx *context) common(reference seed) poly {
	ctx.last.Lock()
	defer ctx.last.Unlock()
	if ctx.last.common == nil || ctx.last.reference != reference {
		scratches := ctx.take(1)
		defer ctx.put(scratches)
		a := ctx.newPoly()
		ctx.uniform(derive(reference, domainCommon), scratches[0], a)
		ctx.last.reference, ctx.last.common = reference, a
	}
	return ctx.last.common
}

func (ctx *context) montgomery(p poly) {
	for i, r := range ctx.rings {
		r.MForm(ctx.row(p, i), ctx.row(p, i))
	}
}

// identify commits to everything that a public key or a key share says.
func identify(h header, body []byte) (id keyID) {
	digest := sha256.New()
	digest.Write([]byte("atoll/lattice/key/1"))
	digest.Write([]byte{version, byte(h.kind), h.set, byte(h.width)})
	digest.Write(number(h.count))
	digest.Write(body)
	copy(id[:], digest.Sum(nil))
	return id
}

func writeSecret(h header, from seed, out []byte) {
	copy(out[headerSize:], from[:])
	h.write(out)
}

func (ctx *context) polyBytes() int { return len(ctx.rings) * ctx.n * residueBytes }

// packResidues writes eight bytes for each residue, of which the next one's take
// over the last.
func (ctx *context) packResidues(p poly, out []byte) {
	last := len(p) - 1
	for j, value := range p[:last] {
		binary.LittleEndian.PutUint64(out[j*residueBytes:], value)
	}
	var room [8]byte
	binary.LittleEndian.PutUint64(room[:], p[last])
	copy(out[last*residueBytes:], room[:residueBytes])
}

func (ctx *context) unpackResidues(in []byte, p poly) error {
	const mask = 1<<(8*residueBytes) - 1
	in = in[:len(p)*residueBytes]
	last := len(p) - 1
	for j := range p[:last] {
		p[j] = binary.LittleEndian.Uint64(in[j*residueBytes:]) & mask
	}
	p[last] = binary.LittleEndian.Uint64(in[len(in)-8:]) >> (64 - 8*residueBytes)
	var beyond uint64
	for i, r := range ctx.rings {
		for _, value := range ctx.row(p, i) {
			beyond |= r.Modulus - 1 - value
		}
	}
	if beyond>>63 != 0 {
		return fault.New(fault.Message, "a key has a residue beyond its modulus")
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
