package product

import (
	"atoll/core/fault"
	"atoll/core/parallel"
)

// Secret is one party's part of the secret key.
type Secret struct {
	ring *Ring
	s    []uint64 // transformed and prepared
}

// String keeps the key out of logs.
func (k *Secret) String() string { return "product.Secret(" + k.ring.Name + ")" }

// GoString keeps the key out of %#v as well.
func (k *Secret) GoString() string { return k.String() }

// NewSecret expands a party's part of the secret key from its seed.
func NewSecret(r *Ring, seed []byte) (*Secret, error) {
	if err := checkSeed(seed); err != nil {
		return nil, err
	}
	k := &Secret{ring: r, s: make([]uint64, r.Limbs*r.N)}
	r.ternary(k.s, newStream(seed, forSecret, []byte(r.Family), 0))
	r.ntt(k.s)
	r.prepare(k.s)
	return k, nil
}

// Free wipes the key; it must not be used afterwards.
func (k *Secret) Free() { clear(k.s) }

// Ring is the ring the key belongs to.
func (k *Secret) Ring() *Ring { return k.ring }

// PublicKey encrypts for the collective key: (-a s + e, a), both transformed and
// prepared; first is -a s + e as it travels.
type PublicKey struct {
	ring  *Ring
	b, a  []uint64
	first []byte
}

// PublicKeyShare is one party's part of the public key, -a s_i + e_i, where a
// comes from the common seed.
func (k *Secret) PublicKeyShare(out, common, seed []byte) error {
	if err := checkSeeds(common, seed); err != nil {
		return err
	}
	if err := checkRoom(out, k.ring.PolySize()); err != nil {
		return err
	}
	nothing := make([]uint64, k.ring.Limbs*k.ring.N)
	k.encryptPoly(out, nothing, common, seed, 0)
	return nil
}

// NewPublicKey adds up the parties' parts.
func NewPublicKey(r *Ring, shares [][]byte, common []byte) (*PublicKey, error) {
	if err := checkSeed(common); err != nil {
		return nil, err
	}
	b, err := AddPolys(r, 1, shares)
	if err != nil {
		return nil, err
	}
	key := &PublicKey{ring: r, b: b, a: make([]uint64, r.Limbs*r.N), first: make([]byte, r.PolySize())}
	r.packResidues(key.first, b, r.N)
	r.uniform(key.a, newStream(common, forCommon, nil, 0))
	r.prepare(key.b)
	r.prepare(key.a)
	return key, nil
}

// Write gives the first half of the public key; the second comes from the common seed.
func (p *PublicKey) Write(out []byte) error {
	if err := checkRoom(out, p.ring.PolySize()); err != nil {
		return err
	}
	copy(out, p.first)
	return nil
}

// checkRoom refuses an output buffer of the wrong size.
func checkRoom(out []byte, size int) error {
	if len(out) != size {
		return fault.New(fault.Argument, "the result has %d bytes, room for %d was given", size, len(out))
	}
	return nil
}

func checkSeeds(seeds ...[]byte) error {
	for _, seed := range seeds {
		if err := checkSeed(seed); err != nil {
			return err
		}
	}
	return nil
}

// AddPolys adds up messages of `count` polynomials each.
func AddPolys(r *Ring, count int, messages [][]byte) ([]uint64, error) {
	if len(messages) == 0 {
		return nil, fault.New(fault.Argument, "there is nothing to add")
	}
	size := r.PolySize()
	for _, message := range messages {
		if err := r.checkSize(message, count*size, "a message of polynomials"); err != nil {
			return nil, err
		}
	}
	length := r.Limbs * r.N
	sum := takeWords(count * length)
	err := parallel.Run(count, func(_, p int) error {
		part := sum[p*length : (p+1)*length]
		read := r.unpackResidues
		for _, message := range messages {
			if err := read(part, message[p*size:(p+1)*size], r.N); err != nil {
				return err
			}
			read = r.unpackAdd
		}
		return nil
	})
	return sum, err
}
