package product

import (
	"atoll/core/fault"
	"atoll/core/parallel"
	"atoll/core/vector"
)

// The halves of a product one by one. The second halves of a ciphertext are expanded
// from its common seed: with them everybody knows its part of the second half of a
// product before the left side is encrypted. So Second travels beside what is encrypted,
// and the first half within the masked decryption share (RefreshAhead). Both halves together
// are what Multiply makes: the encryption of zero in them is one, from one seed and domain.

// Second writes the second half of a sum of products, re-randomised.
func Second(out []byte, key *PublicKey, terms []Term, seed, domain []byte) error {
	if err := checkSeed(seed); err != nil {
		return err
	}
	if err := checkTerms(key, terms, nil, 0); err != nil {
		return err
	}
	r, y := key.ring, terms[0].Right.layout
	size, length := r.PolySize(), r.Limbs*r.N
	if err := checkRoom(out, y.OutPolys()*size); err != nil {
		return err
	}
	sum, err := r.halfSum(terms, secondHalf)
	if err != nil {
		return err
	}
	defer wipeWords(sum)
	return parallel.Run(y.OutPolys(), func(_, p int) error {
		second := sum[p*length : (p+1)*length]
		key.addZeroSecond(second, newStream(seed, forZero, domain, p))
		r.packResidues(out[p*size:(p+1)*size], second, r.N)
		return nil
	})
}

// Ahead is a party's own product of which the second half went ahead; its first half is still due.
type Ahead struct {
	Key   *PublicKey
	Terms []Term
	// Seed and Domain are those of Second: both halves hold one encryption of zero.
	Seed, Domain []byte
	// Public are terms with right sides that all parties know. Their second halves are in nobody's message: every
	// party adds them to the sum that it was sent. Their first halves are in the Terms of one party.
	Public []Term
}

// RefreshAhead is Refresh where the party's product (no terms: it has none) is not in what the coordinator added up:
// its first half, cut down to the coefficients that carry a result, goes into the message. `second` is the sum of
// what all parties sent; the public terms are still missing in it.
func (k *Secret) RefreshAhead(
	message []byte, share *Matrix, second []byte, ahead *Ahead, y Layout, c Clearing, seed, domain []byte,
) error {
	return k.refresh(message, share, second, ahead, y, c, seed, domain)
}

// first is the sum of products of first halves, transformed; nil if there is none.
func (a *Ahead) first(r *Ring, y Layout) ([]uint64, error) {
	if a == nil || len(a.Terms) == 0 {
		return nil, nil
	}
	if err := r.checkAhead(a.Terms, y); err != nil {
		return nil, err
	}
	if err := checkSeed(a.Seed); err != nil {
		return nil, err
	}
	for _, term := range a.Terms {
		if term.Left.c0 == nil {
			return nil, fault.New(fault.Argument, "a ciphertext has no first halves yet")
		}
	}
	return r.halfSum(a.Terms, firstHalf)
}

// public is the second half of the public terms, transformed; nil if there are none.
func (a *Ahead) public(r *Ring, y Layout) ([]uint64, error) {
	if a == nil || len(a.Public) == 0 {
		return nil, nil
	}
	if err := r.checkAhead(a.Public, y); err != nil {
		return nil, err
	}
	return r.halfSum(a.Public, secondHalf)
}

func (r *Ring) checkAhead(terms []Term, y Layout) error {
	if err := r.checkTerms(terms, nil, 0); err != nil {
		return err
	}
	if !terms[0].Right.layout.sameOutput(y) {
		return fault.New(fault.Argument, "a product and its decryption share have different layouts")
	}
	return nil
}

// add adds one block of the first half to a transformed polynomial.
func (a *Ahead) add(poly, first []uint64, block int) {
	if first == nil {
		return
	}
	r, length := a.Key.ring, len(poly)
	r.addInto(poly, first[block*length:(block+1)*length], r.N)
	a.Key.addBlinded(poly, a.Key.b, newStream(a.Seed, forZero, a.Domain, block))
}

// errors are those of the first half of the encryption of zero.
func (a *Ahead) errors(block int) *stream {
	if a == nil || len(a.Terms) == 0 {
		return nil
	}
	return newStream(a.Seed, forFirst, a.Domain, block)
}

func firstHalf(c *Ciphertext) []uint64 { return c.c0 }

func secondHalf(c *Ciphertext) []uint64 { return c.c1 }

// halfSum is the sum of products of one half of every left side, transformed.
func (r *Ring) halfSum(terms []Term, half func(*Ciphertext) []uint64) ([]uint64, error) {
	y := terms[0].Right.layout
	length := y.OutPolys() * r.Limbs * r.N
	// The kernels make two halves at a time: here they are the same.
	twice := make([]Term, len(terms))
	streamed := false
	for i, term := range terms {
		polys := half(term.Left)
		twice[i] = Term{&Ciphertext{ring: r, layout: term.Left.layout, c0: polys, c1: polys}, term.Right}
		streamed = streamed || term.Right.source != nil
	}
	sum := takeWords(length)
	if !streamed {
		return sum, r.sumOfHalves(sum, twice, y)
	}
	other := takeWords(length)
	defer wipeWords(other)
	return sum, r.chosenSum(twice)(sum, other, twice, y)
}

// sumOfHalves is sumOfProducts where both halves are the same, and one of them is kept.
func (r *Ring) sumOfHalves(out []uint64, terms []Term, y Layout) error {
	steps := y.colBlocks() * r.Limbs
	scratch := make([]vector.Sums, parallel.Workers(steps))
	other := make([][]uint64, len(scratch))
	for i := range other {
		other[i] = make([]uint64, tile)
	}
	defer clear(other)
	return parallel.Run(steps, func(worker, step int) error {
		colBlock, l := step/r.Limbs, step%r.Limbs
		for from := 0; from < r.N; from += tile {
			for rowBlock := range y.rowBlocks() {
				sums := &scratch[worker]
				*sums = vector.Sums{}
				for t := range terms {
					r.accumulate(sums, &terms[t], rowBlock, colBlock, l, from)
				}
				place := (rowBlock*y.colBlocks()+colBlock)*r.Limbs*r.N + l*r.N + from
				r.arithmetic[l].Reduce(out[place:place+tile], other[worker], sums)
			}
		}
		return nil
	})
}

// addZeroSecond adds u a + e1, the second half of an encryption of zero; the first one adds u b from an equal stream.
func (p *PublicKey) addZeroSecond(second []uint64, s *stream) {
	r := p.ring
	e := r.poly()
	defer r.wiped(e)
	p.addBlinded(second, p.a, s)
	r.errors(*e, s)
	r.ntt(*e)
	r.addInto(second, *e, r.N)
}

func (p *PublicKey) addBlinded(poly, half []uint64, s *stream) {
	r := p.ring
	u := r.poly()
	defer r.wiped(u)
	r.ternary(*u, s)
	r.ntt(*u)
	r.mulAddInto(poly, *u, half)
}

// AddSecond takes in second halves alone; their first halves come with the decryption shares.
func (p *ProductSum) AddSecond(message []byte) error {
	r, y := p.ring, p.layout
	size, length := r.PolySize(), r.Limbs*r.N
	if err := r.checkSize(message, y.OutPolys()*size, "the second halves of a product"); err != nil {
		return err
	}
	if p.shares > 0 {
		return fault.New(fault.Argument, "the sum is closed: decryption shares were added")
	}
	return parallel.Run(y.OutPolys(), func(_, o int) error {
		return r.unpackAdd(p.second[o*length:(o+1)*length], message[o*size:(o+1)*size], r.N)
	})
}
