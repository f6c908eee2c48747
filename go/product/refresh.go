package product

import (
	"math"
	"math/bits"

	"atoll/core/fault"
	"atoll/core/parallel"
	"atoll/core/sample"
)

// The margins, in bits, that hide a value under a mask, and noise (which depends
// on keys) under the part of the mask that is thrown away.
const (
	MaskMargin     = 64
	TruncateMargin = 60
)

// deviations is how many standard deviations a noise bound allows for: a
// sub-Gaussian variable exceeds ten with probability below 2^-71.
const deviations = 10

// Clearing declares the bounds of one refresh and what follows from them.
type Clearing struct {
	Parties int
	// ValueBits: the results are below 2^ValueBits in magnitude, shift included.
	ValueBits int
	// RightBits: in every block of columns, the matrices on the right, added up
	// over parties and terms, have a Frobenius norm below 2^RightBits.
	RightBits int
	// Truncate is how many low bits are dropped.
	Truncate int
	// MaskBits is the width of every party's masks.
	MaskBits int
}

// NoiseBits bounds the noise of a sum of products: the errors of the ciphertext
// times the right side, and the encryptions of zero.
func (p Parameters) NoiseBits(parties, rightBits int) int {
	count := float64(parties)
	fromRight := math.Sqrt(count) * math.Exp2(float64(rightBits))
	// u e + e1 s: the public key's error and the secret are sums over all parties,
	// and every party adds one such encryption.
	fromZero := count*math.Sqrt(2*float64(p.Degree())) + math.Sqrt(count)
	return int(math.Ceil(math.Log2(deviations * errorDeviation * (fromRight + fromZero))))
}

func (c Clearing) check(r *Ring) error {
	if c.Parties < 2 || c.Parties > MaxParties {
		return fault.New(fault.Argument, "%d parties: from 2 to %d are possible", c.Parties, MaxParties)
	}
	if c.ValueBits < 1 || c.RightBits < 0 || c.Truncate < 1 {
		return fault.New(fault.Argument, "the bounds of a refresh make no sense")
	}
	if noise := r.NoiseBits(c.Parties, c.RightBits); c.Truncate < noise+TruncateMargin {
		return fault.New(fault.Argument, "dropping %d bits does not hide noise of %d bits", c.Truncate, noise)
	}
	if c.MaskBits < c.ValueBits+MaskMargin || c.MaskBits <= c.Truncate {
		return fault.New(fault.Argument, "masks of %d bits do not hide values of %d bits", c.MaskBits, c.ValueBits)
	}
	if float64(c.MaskBits-1+bits.Len(uint(c.Parties))) > r.LogQ()-1 {
		return fault.New(fault.Argument, "masks of %d bits from %d parties do not fit the ring %q",
			c.MaskBits, c.Parties, r.Name)
	}
	return nil
}

// ShareWords is the width of the integers that a refresh makes.
func (c Clearing) ShareWords() int { return (c.MaskBits-c.Truncate+bits.Len(uint(c.Parties))+1)/64 + 1 }

// ProductSum adds up the product messages of all who multiplied, and then the
// masked decryption shares of all parties.
type ProductSum struct {
	ring   *Ring
	layout Layout
	first  []uint64 // Limbs x (Rows Cols)
	second []uint64 // transformed
	shares int
}

// NewProductSum starts an empty sum.
func NewProductSum(r *Ring, y Layout) (*ProductSum, error) {
	if err := y.check(r); err != nil {
		return nil, err
	}
	return &ProductSum{
		ring: r, layout: y,
		first:  make([]uint64, r.Limbs*y.Rows*y.Cols),
		second: make([]uint64, y.OutPolys()*r.Limbs*r.N),
	}, nil
}

// Add takes in one product message. After an error the sum must not be used any more.
func (p *ProductSum) Add(message []byte) error {
	r, y := p.ring, p.layout
	if err := r.checkSize(message, ProductSize(r, y), "a product"); err != nil {
		return err
	}
	if p.shares > 0 {
		return fault.New(fault.Argument, "the sum is closed: decryption shares were added")
	}
	head := r.residuesSize(y.Rows * y.Cols)
	if err := p.addFirst(message[:head]); err != nil {
		return err
	}
	size, length := r.PolySize(), r.Limbs*r.N
	return parallel.Run(y.OutPolys(), func(_, o int) error {
		return r.unpackAdd(p.second[o*length:(o+1)*length], message[head+o*size:head+(o+1)*size], r.N)
	})
}

func (p *ProductSum) addFirst(data []byte) error {
	count := p.layout.Rows * p.layout.Cols
	return p.ring.unpackAdd(p.first, data, count)
}

// Second is what every party needs for its decryption share.
func (p *ProductSum) Second(out []byte) error {
	r := p.ring
	size, length := r.PolySize(), r.Limbs*r.N
	if err := checkRoom(out, p.layout.OutPolys()*size); err != nil {
		return err
	}
	return parallel.Run(p.layout.OutPolys(), func(_, o int) error {
		r.packResidues(out[o*size:(o+1)*size], p.second[o*length:(o+1)*length], r.N)
		return nil
	})
}

// Refresh writes this party's decryption share under a mask (a message), and
// minus the mask, truncated: its share of the result. For one ciphertext it may
// be called with one seed and one domain only.
func (k *Secret) Refresh(
	message []byte, share *Matrix, second []byte, y Layout, c Clearing, seed, domain []byte,
) error {
	return k.refresh(message, share, second, nil, y, c, seed, domain)
}

func (k *Secret) refresh(
	message []byte, share *Matrix, second []byte, ahead *Ahead, y Layout, c Clearing, seed, domain []byte,
) error {
	r := k.ring
	if err := y.check(r); err != nil {
		return err
	}
	if err := c.check(r); err != nil {
		return err
	}
	if err := checkSeed(seed); err != nil {
		return err
	}
	if err := checkRoom(message, MaskedSize(r, y)); err != nil {
		return err
	}
	if err := share.checkShape(y.Rows, y.Cols, c.ShareWords()); err != nil {
		return err
	}
	size := r.PolySize()
	if err := r.checkSize(second, y.OutPolys()*size, "the second halves of a product"); err != nil {
		return err
	}
	first, err := ahead.first(r, y)
	if err != nil {
		return err
	}
	defer wipeWords(first)
	public, err := ahead.public(r, y)
	if err != nil {
		return err
	}
	defer giveWords(public)
	count, length := y.Rows*y.Cols, r.Limbs*r.N
	masked := make([]uint64, r.Limbs*count)
	err = parallel.Run(y.OutPolys(), func(_, o int) error {
		poly := r.poly()
		defer r.wiped(poly)
		if err := r.unpackResidues(*poly, second[o*size:(o+1)*size], r.N); err != nil {
			return err
		}
		if public != nil {
			r.addInto(*poly, public[o*length:(o+1)*length], r.N)
		}
		r.mulInto(*poly, *poly, k.s)
		ahead.add(*poly, first, o)
		r.intt(*poly)
		s := newStream(seed, forMask, domain, o)
		return r.mask(masked, share, *poly, y, o/y.colBlocks(), o%y.colBlocks(), c, s, ahead.errors(o))
	})
	if err != nil {
		return err
	}
	r.packResidues(message, masked, count)
	return nil
}

// MaskedSize is the number of bytes of a masked decryption share.
func MaskedSize(r *Ring, y Layout) int { return r.residuesSize(y.Rows * y.Cols) }

// mask adds a mask to every result of one block and keeps minus the mask; errors (nil: none) are those
// of a first half that is in the results.
func (r *Ring) mask(
	masked []uint64, share *Matrix, poly []uint64, y Layout, rowBlock, colBlock int, c Clearing, s, errors *stream,
) error {
	rowFrom, rowTo := span(rowBlock, y.BlockRows, y.Rows)
	colFrom, colTo := span(colBlock, y.BlockCols, y.Cols)
	count := y.Rows * y.Cols
	var space [maxWords]uint64
	mask := space[:r.Words()]
	for i := rowFrom; i < rowTo; i++ {
		for k := colFrom; k < colTo; k++ {
			centred(mask, c.MaskBits, s)
			place, noise := y.out(i-rowFrom, k-colFrom), int64(0)
			if errors != nil {
				noise = smallError(errors)
			}
			for l, q := range r.Moduli {
				value := addMod(poly[l*r.N+place], sample.Residue(noise, q), q)
				masked[l*count+i*y.Cols+k] = addMod(value, r.residue(mask, l), q)
			}
			roundShift(mask, c.Truncate)
			negate(mask)
			if err := resize(share.At(i, k), mask); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddShare takes in one party's masked decryption share. After an error the sum must not be used any more.
func (p *ProductSum) AddShare(message []byte) error {
	size := p.ring.residuesSize(p.layout.Rows * p.layout.Cols)
	if err := p.ring.checkSize(message, size, "a masked decryption share"); err != nil {
		return err
	}
	if err := p.addFirst(message); err != nil {
		return err
	}
	p.shares++
	return nil
}

// Total writes the masked values as they are before truncation.
func (p *ProductSum) Total(out []byte) error {
	count := p.layout.Rows * p.layout.Cols
	if err := checkRoom(out, p.ring.residuesSize(count)); err != nil {
		return err
	}
	p.ring.packResidues(out, p.first, count)
	return nil
}

// Clear writes the masked values, truncated: the public share. A value that masks
// cannot explain means that a key, a share or a bound was wrong.
func (p *ProductSum) Clear(out *Matrix, c Clearing) error {
	if p.shares != c.Parties {
		return fault.New(fault.Argument, "%d of %d decryption shares were added", p.shares, c.Parties)
	}
	return p.ring.clearValues(out, p.first, p.layout, c)
}

// ClearTotal is Clear for masked values as Total wrote them.
func ClearTotal(out *Matrix, r *Ring, y Layout, total []byte, c Clearing) error {
	if err := y.check(r); err != nil {
		return err
	}
	count := y.Rows * y.Cols
	if err := r.checkSize(total, r.residuesSize(count), "a masked total"); err != nil {
		return err
	}
	first := make([]uint64, r.Limbs*count)
	if err := r.unpackResidues(first, total, count); err != nil {
		return err
	}
	return r.clearValues(out, first, y, c)
}

// most is the largest masked value that there can be: everybody's mask at its widest, a result and noise. Not
// a bit more: what is left free, a party could fill with numbers that it reads from the total.
func (c Clearing) most(r *Ring) []uint64 {
	power, most := make([]uint64, r.Words()), make([]uint64, r.Words())
	power[(c.MaskBits-1)/64] = 1 << ((c.MaskBits - 1) % 64)
	addScaled(most, power, uint64(c.Parties))
	for _, width := range []int{c.ValueBits, r.NoiseBits(c.Parties, c.RightBits)} {
		clear(power)
		power[width/64] = 1 << (width % 64)
		add(most, power)
	}
	return most
}

// within tells whether -most <= x <= most.
func within(x, most []uint64) bool {
	var space [maxWords]uint64
	size := space[:len(x)]
	copy(size, x)
	if int64(x[len(x)-1]) < 0 {
		negate(size)
	}
	return !less(most, size)
}

func (r *Ring) clearValues(out *Matrix, first []uint64, y Layout, c Clearing) error {
	if err := c.check(r); err != nil {
		return err
	}
	if err := out.checkShape(y.Rows, y.Cols, c.ShareWords()); err != nil {
		return err
	}
	words, count := r.Words(), y.Rows*y.Cols
	most := c.most(r)
	return parallel.Run(y.Rows, func(_, i int) error {
		var residues, digits, value [maxWords]uint64
		for k := range y.Cols {
			for l := range r.Moduli {
				residues[l] = first[l*count+i*y.Cols+k]
			}
			r.lift(residues[:r.Limbs], digits[:r.Limbs], value[:words])
			if !within(value[:words], most) {
				return fault.New(fault.Range, "a masked value is wider than its masks: a share is wrong or missing")
			}
			roundShift(value[:words], c.Truncate)
			if err := resize(out.At(i, k), value[:words]); err != nil {
				return err
			}
		}
		return nil
	})
}
