package additive

import (
	"encoding/json"
	"math/big"
	"sync"

	"github.com/tuneinsight/lattigo/v6/ring"

	"atoll/core/fault"
)

// Set is one row of the parameter table; src/atoll/crypto/hazmat/parameters.py holds
// the same rows and a test compares them.
type Set struct {
	ID           uint8    `json:"id"`
	Name         string   `json:"name"`
	LogN         int      `json:"log_n"`
	Primes       []uint64 `json:"primes"`
	Coefficients int      `json:"coefficients"` // per value: 1 with the whole value, or 3 with a residue each
	CipherBytes  int      `json:"cipher_bytes"` // a ciphertext's coefficient on the wire
	ShareBytes   int      `json:"share_bytes"`  // a decryption share's coefficient on the wire
	SmudgeBits   int      `json:"smudge_bits"`  // smudging is uniform on this many bits of the wire's grid
	MaxSummands  int      `json:"max_summands"`
	MaxMembers   int      `json:"max_members"` // 0: one key holder
	SecurityBits int      `json:"security_bits"`
	Insecure     bool     `json:"insecure"`
}

// Primes are 1 modulo 2^15, so that one list serves every ring degree here.
var (
	primes52 = []uint64{0xffffffff58001, 0xffffffff00001}
	primes54 = []uint64{0x3fffffffef8001, 0x3fffffffeb8001, 0x3fffffffe38001}
	primes53 = []uint64{0x1ffffffff38001, 0x1fffffffe30001, 0x1fffffffe28001, 0x1fffffffde8001}
	primes56 = []uint64{0xfffffffff78001, 0xfffffffff70001, 0xfffffffff00001, 0xffffffffeb0001, 0xffffffffe68001}
)

var sets = []Set{
	{ID: 1, Name: "single-13", LogN: 13, Primes: primes53, Coefficients: 1, CipherBytes: 26, MaxSummands: 1024, SecurityBits: 128},
	{ID: 2, Name: "collective-14", LogN: 14, Primes: primes56, Coefficients: 1, CipherBytes: 35, ShareBytes: 26, SmudgeBits: 80,
		MaxSummands: 1024, MaxMembers: 256, SecurityBits: 128},
	{ID: 5, Name: "single-12", LogN: 12, Primes: primes52, Coefficients: 3, CipherBytes: 12, MaxSummands: 1024, SecurityBits: 128},
	{ID: 6, Name: "collective-13", LogN: 13, Primes: primes54, Coefficients: 3, CipherBytes: 20, ShareBytes: 12, SmudgeBits: 78,
		MaxSummands: 1024, MaxMembers: 256, SecurityBits: 128},
	{ID: 129, Name: "test-single-10", LogN: 10, Primes: primes53, Coefficients: 1, CipherBytes: 26, MaxSummands: 1024, Insecure: true},
	{ID: 130, Name: "test-collective-10", LogN: 10, Primes: primes56, Coefficients: 1, CipherBytes: 35, ShareBytes: 26, SmudgeBits: 80,
		MaxSummands: 1024, MaxMembers: 256, Insecure: true},
	{ID: 133, Name: "test-single-9", LogN: 9, Primes: primes52, Coefficients: 3, CipherBytes: 12, MaxSummands: 1024, Insecure: true},
	{ID: 134, Name: "test-collective-9", LogN: 9, Primes: primes54, Coefficients: 3, CipherBytes: 20, ShareBytes: 12, SmudgeBits: 78,
		MaxSummands: 1024, MaxMembers: 256, Insecure: true},
}

const (
	// MaxWidth is the largest number of polynomials that share one c1.
	MaxWidth = 16
	// MaxValues bounds what a message may claim to hold, before anything is allocated.
	MaxValues = 1 << 26
	// SeedBytes is the length of every seed.
	SeedBytes = 32
	// residueBytes is a residue modulo one prime on the wire; all primes are below 2^56.
	residueBytes = 7
)

// Table is the parameter table as JSON, for the test that pins it.
func Table() []byte {
	text, err := json.Marshal(sets)
	if err != nil {
		panic(err)
	}
	return text
}

// context is a set with everything precomputed.
type context struct {
	*Set
	n        int // ring degree
	rings    []*ring.SubRing
	inverse  []uint64    // (Q/q_i)^-1 mod q_i, Montgomery form
	fraction [][6]uint64 // floor(2^384/q_i)
	modulus  []uint64    // Q as words, as many as a wire coefficient has
	lift     [][]uint64  // -2^(64(w-words)) mod q_i for word w, Montgomery form
	unit     []uint64    // 1 mod q_i, Montgomery form
	scratch  sync.Pool
	last     struct {
		sync.Mutex
		reference seed
		common    poly
	}
}

var (
	contextMutex sync.Mutex
	contexts     = map[uint8]*context{}
)

// contextOf finds the set and refuses one that is for tests only, unless the
// caller runs one.
func contextOf(id uint8, insecure bool) (*context, error) {
	contextMutex.Lock()
	defer contextMutex.Unlock()
	ctx, found := contexts[id]
	if !found {
		set := findSet(id)
		if set == nil {
			return nil, fault.New(fault.Message, "parameter set %d is unknown", id)
		}
		var err error
		if ctx, err = newContext(set); err != nil {
			return nil, err
		}
		contexts[id] = ctx
	}
	if ctx.Insecure && !insecure {
		return nil, fault.New(fault.Argument, "parameter set %q is insecure and for tests only", ctx.Name)
	}
	return ctx, nil
}

func findSet(id uint8) *Set {
	for i := range sets {
		if sets[i].ID == id {
			return &sets[i]
		}
	}
	return nil
}

func newContext(set *Set) (*context, error) {
	n := 1 << set.LogN
	rq, err := ring.NewRing(n, set.Primes)
	if err != nil {
		return nil, err
	}
	ctx := &context{Set: set, n: n, rings: rq.SubRings}
	words := (set.CipherBytes + 7) / 8
	q := big.NewInt(1)
	for _, prime := range set.Primes {
		q.Mul(q, new(big.Int).SetUint64(prime))
	}
	ctx.modulus = wordsOf(q, words)
	for _, prime := range set.Primes {
		ctx.addPrime(q, new(big.Int).SetUint64(prime), words)
	}
	ctx.scratch.New = func() any { return newScratch(ctx) }
	return ctx, nil
}

// addPrime precomputes what the changes between residues and fractions need.
func (ctx *context) addPrime(q, prime *big.Int, words int) {
	rest := new(big.Int).Div(q, prime)
	inverse := new(big.Int).ModInverse(rest, prime)
	inverse.Lsh(inverse, 64).Mod(inverse, prime)
	ctx.inverse = append(ctx.inverse, inverse.Uint64())

	whole := new(big.Int).Lsh(big.NewInt(1), 384)
	ctx.fraction = append(ctx.fraction, [6]uint64(wordsOf(whole.Div(whole, prime), 6)))

	lift := make([]uint64, words)
	step := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 64), prime)
	unit := new(big.Int).Lsh(big.NewInt(1), 64)
	unit.Mod(unit, prime)
	ctx.unit = append(ctx.unit, unit.Uint64())
	power := new(big.Int).Neg(unit)
	for w := words - 1; w >= 0; w-- {
		power.Mul(power, step).Mod(power, prime)
		lift[w] = power.Uint64()
	}
	ctx.lift = append(ctx.lift, lift)
}

func wordsOf(value *big.Int, words int) []uint64 {
	list := make([]uint64, words)
	mask := new(big.Int).SetUint64(^uint64(0))
	rest := new(big.Int).Set(value)
	for w := range list {
		list[w] = new(big.Int).And(rest, mask).Uint64()
		rest.Rsh(rest, 64)
	}
	return list
}

// poly is one polynomial: a row of n residues for each prime.
type poly []uint64

func (ctx *context) newPoly() poly { return make(poly, len(ctx.rings)*ctx.n) }

func (ctx *context) row(p poly, i int) []uint64 { return p[i*ctx.n : (i+1)*ctx.n] }

// scratch is what one worker needs; pooled, because fresh pages cost more than
// the arithmetic on them.
type scratch struct {
	poly   poly
	stream []byte
	small  []int8
}

func newScratch(ctx *context) *scratch {
	return &scratch{poly: ctx.newPoly(), stream: make([]byte, 16*ctx.n), small: make([]int8, ctx.n)}
}

// take lends one scratch per worker; give it back with put.
func (ctx *context) take(workers int) []*scratch {
	list := make([]*scratch, workers)
	for i := range list {
		list[i] = ctx.scratch.Get().(*scratch)
	}
	return list
}

// put wipes what may be secret and returns the scratch to the pool.
func (ctx *context) put(list []*scratch) {
	for _, s := range list {
		clear(s.poly)
		clear(s.stream)
		clear(s.small)
		ctx.scratch.Put(s)
	}
}
