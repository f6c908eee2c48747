package product

import (
	"math"
	"sync"

	"github.com/tuneinsight/lattigo/v6/ring"

	"atoll/core/fault"
	"atoll/core/vector"
)

// Parameters is one row of the table: a ring and the security it gives for a
// ternary secret and errors of standard deviation 3.24.
type Parameters struct {
	Name string
	// Family: rows of one family differ in the number of moduli only, the shorter
	// lists being prefixes of the longer ones, and share their keys.
	Family   string
	LogN     int
	Moduli   []uint64
	Security int
	// MaxLogQ is the widest modulus that gives Security bits against classical
	// attacks at this degree (Bossuat et al., Security Guidelines for Implementing
	// Homomorphic Encryption, 2024). There is no special prime beside the moduli.
	MaxLogQ float64
}

// modulusBits is the width of every modulus; residues travel packed to it.
const modulusBits = vector.Bits

// MaxParties bounds the number of parties: every noise and mask bound holds up to it.
const MaxParties = 256

// The moduli are the largest primes below 2^52 that are 1 modulo 2^15, so that
// one list serves both degrees.
var moduli = []uint64{
	0xffffffff58001, 0xffffffff00001, 0xfffffffe88001, 0xfffffffe40001,
	0xfffffffe20001, 0xfffffffd98001, 0xfffffffd78001, 0xfffffffca8001,
}

// Table lists the only rings there are, narrower ones first. "wide" is for
// products with data (many features, few bits), "deep" for small matrices at high
// precision; a product uses the fewest moduli that hold it.
var Table = []Parameters{
	{Name: "wide4", Family: "wide", LogN: 13, Moduli: moduli[:4], Security: 128, MaxLogQ: 214},
	{Name: "deep5", Family: "deep", LogN: 14, Moduli: moduli[:5], Security: 128, MaxLogQ: 430},
	{Name: "deep6", Family: "deep", LogN: 14, Moduli: moduli[:6], Security: 128, MaxLogQ: 430},
	{Name: "deep7", Family: "deep", LogN: 14, Moduli: moduli[:7], Security: 128, MaxLogQ: 430},
	{Name: "deep8", Family: "deep", LogN: 14, Moduli: moduli[:8], Security: 128, MaxLogQ: 430},
}

// Limits are the numbers that every caller's arithmetic rests on, whatever the ring.
type Limits struct {
	MaskMargin     int `json:"mask_margin"`
	TruncateMargin int `json:"truncate_margin"`
	MaxParties     int `json:"max_parties"`
	MaxWords       int `json:"max_words"`
	Points         int `json:"points"`
	ModulusBits    int `json:"modulus_bits"`
}

// AllLimits is the one place where callers learn them.
func AllLimits() Limits {
	return Limits{MaskMargin, TruncateMargin, MaxParties, maxWords, Points, modulusBits}
}

// Ring holds what is precomputed for one row of the table; it is immutable.
type Ring struct {
	Parameters
	N, Limbs int
	path     vector.Path
	// arithmetic[l] is that modulo the l-th modulus, on the path.
	arithmetic []vector.Modulus
	barrett    [][2]uint64
	// word[l][k] = 2^(64 k) modulo the l-th modulus, to reduce integers of many words.
	word [][]uint64
	// inverse[l][j] = 1 / moduli[j] modulo moduli[l] for j < l (Garner's method).
	inverse [][]uint64
	// radix[l] = moduli[0] ... moduli[l-1] in words; the last one is Q itself.
	radix  [][]uint64
	half   []uint64
	buffer sync.Pool
}

// maxWords bounds the width of integers that enter a ring.
const maxWords = 8

// A ring is made when it is first asked for: whoever only plans a run needs the table, not the rings.
var rings = makers()

// chosen is the path of every ring of the table, found when the first one asks.
var chosen = sync.OnceValues(vector.Chosen)

func makers() map[string]func() (*Ring, error) {
	makers := map[string]func() (*Ring, error){}
	for _, parameters := range Table {
		makers[parameters.Name] = sync.OnceValues(func() (*Ring, error) {
			path, err := chosen()
			if err != nil {
				return nil, err
			}
			return newRing(parameters, path)
		})
	}
	return makers
}

// Get returns the ring of that name.
func Get(name string) (*Ring, error) {
	maker, ok := rings[name]
	if !ok {
		return nil, fault.New(fault.Argument, "there is no ring %q in the table", name)
	}
	return maker()
}

// ChosenPath names the path on which the rings of the table compute.
func ChosenPath() (string, error) {
	path, err := chosen()
	return path.Name, err
}

// Path is how the ring computes.
func (r *Ring) Path() string { return r.path.Name }

// Degree is how many coefficients a polynomial has.
func (p Parameters) Degree() int { return 1 << p.LogN }

// LogQ is the width of the modulus in bits.
func (p Parameters) LogQ() float64 {
	bits := 0.0
	for _, q := range p.Moduli {
		bits += math.Log2(float64(q))
	}
	return bits
}

// shared is what is precomputed for one modulus at one degree. Rings of a family share it.
type shared struct {
	barrett    [2]uint64
	arithmetic vector.Modulus
}

type place struct {
	path    string
	logN    int
	modulus uint64
}

// precomputed holds, by place, functions that make what is shared when they are first called.
var precomputed sync.Map

func sharedAt(path vector.Path, logN int, modulus uint64) (shared, error) {
	maker, _ := precomputed.LoadOrStore(place{path.Name, logN, modulus}, sync.OnceValues(func() (shared, error) {
		base, err := ring.NewRing(1<<logN, []uint64{modulus})
		if err != nil {
			return shared{}, err
		}
		sub := base.SubRings[0]
		return shared{[2]uint64{sub.BRedConstant[0], sub.BRedConstant[1]}, path.New(sub)}, nil
	}))
	return maker.(func() (shared, error))()
}

func newRing(parameters Parameters, path vector.Path) (*Ring, error) {
	r := &Ring{Parameters: parameters, N: parameters.Degree(), Limbs: len(parameters.Moduli), path: path}
	for _, modulus := range parameters.Moduli {
		made, err := sharedAt(path, parameters.LogN, modulus)
		if err != nil {
			return nil, err
		}
		r.barrett = append(r.barrett, made.barrett)
		r.arithmetic = append(r.arithmetic, made.arithmetic)
	}
	r.precomputeWords()
	r.precomputeGarner()
	size := r.Limbs * r.N
	r.buffer.New = func() any { poly := make([]uint64, size); return &poly }
	return r, nil
}

func (r *Ring) precomputeWords() {
	for l, q := range r.Moduli {
		powers := make([]uint64, maxWords+1)
		powers[0] = 1
		for k := 1; k <= maxWords; k++ {
			powers[k] = reduce128(powers[k-1], 0, q, r.barrett[l])
		}
		r.word = append(r.word, powers)
	}
}

func (r *Ring) precomputeGarner() {
	words := r.Words()
	product := make([]uint64, words)
	product[0] = 1
	for l, q := range r.Moduli {
		inverses := make([]uint64, l)
		for j := range l {
			inverses[j] = ring.ModExp(r.Moduli[j]%q, q-2, q)
		}
		r.inverse = append(r.inverse, inverses)
		r.radix = append(r.radix, append([]uint64(nil), product...))
		scaled := make([]uint64, words)
		addScaled(scaled, product, q)
		product = scaled
	}
	r.radix = append(r.radix, product)
	r.half = append([]uint64(nil), product...)
	shiftRight(r.half, 1)
}

// Words is how many 64-bit words hold an integer modulo Q with its sign.
func (r *Ring) Words() int { return (r.Limbs*modulusBits + 1 + 63) / 64 }

// poly borrows a polynomial of undefined content; give it back with done.
func (r *Ring) poly() *[]uint64     { return r.buffer.Get().(*[]uint64) }
func (r *Ring) done(poly *[]uint64) { r.buffer.Put(poly) }

// wiped is done for what held a secret, or what one follows from.
func (r *Ring) wiped(poly *[]uint64) {
	clear(*poly)
	r.done(poly)
}

// limb is the part of a polynomial modulo the l-th modulus.
func (r *Ring) limb(poly []uint64, l int) []uint64 { return poly[l*r.N : (l+1)*r.N : (l+1)*r.N] }
