package ckks

import (
	"encoding/json"
	"math"
	"math/big"
	"sync"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"atoll/core/fault"
)

// Set is one row of the parameter table; src/atoll/crypto/hazmat/slots.py reads it.
type Set struct {
	ID            uint8    `json:"id"`
	Name          string   `json:"name"`
	LogN          int      `json:"log_n"`
	Moduli        []uint64 `json:"moduli"`
	Special       uint64   `json:"special"`        // the modulus of key switching alone
	ScaleBits     int      `json:"scale_bits"`     // at the highest level; close to it at all
	RefreshLevel  int      `json:"refresh_level"`  // the lowest from which a refresh is possible
	MagnitudeBits int      `json:"magnitude_bits"` // no slot of what is refreshed or opened reaches 2^this
	MaskBits      int      `json:"mask_bits"`      // a refresh's masks are uniform on this many
	MaxParties    int      `json:"max_parties"`
	SecurityBits  int      `json:"security_bits"`
	Insecure      bool     `json:"insecure"`
}

// The moduli are 1 modulo 2^15 and, from the highest down, each is the prime
// closest to S_l^2 / 2^38, so that no scale drifts away. The lowest and the
// special one are what the security leaves: together they have 430 bits, which at
// N = 2^14 is what Bossuat et al., "Security Guidelines for Implementing
// Homomorphic Encryption" (2024), allow for 128 bits and ternary secrets; the
// homomorphic encryption standard (2018) allows 438.
var (
	moduli = []uint64{0x3fffffa8001, 0x4000170001, 0x3fffe80001, 0x3fffe08001, 0x4000138001, 0x4000188001,
		0x3ffff28001, 0x4000098001, 0x3ffff48001, 0x4000038001}
	special uint64 = 0x3ffffff70001
)

// MaskMargin is how many bits wider a mask is than what it hides.
const MaskMargin = 64

var sets = []Set{
	{ID: 1, Name: "paper-14", LogN: 14, Moduli: moduli, Special: special, ScaleBits: 38, RefreshLevel: 2,
		MagnitudeBits: 10, MaskBits: 112, MaxParties: 63, SecurityBits: 128},
	{ID: 129, Name: "test-slots-10", LogN: 10, Moduli: moduli, Special: special, ScaleBits: 38, RefreshLevel: 2,
		MagnitudeBits: 10, MaskBits: 112, MaxParties: 63, Insecure: true},
}

// SeedBytes is the length of every seed.
const SeedBytes = 32

// Table is the parameter table as JSON.
func Table() []byte {
	text, err := json.Marshal(sets)
	if err != nil {
		panic(err)
	}
	return text
}

// Machine is a set with everything precomputed.
type Machine struct {
	*Set
	n        int
	top      int // the highest level
	params   lattigo.Parameters
	encoder  *lattigo.Encoder
	extender *ring.BasisExtender
	scales   []rlwe.Scale
	inverse  [3]uint64 // of q_0 modulo q_1, of q_0 and of q_1 modulo q_2
	pool     sync.Pool
}

var (
	machineMutex sync.Mutex
	machines     = map[uint8]*Machine{}
)

// MachineOf finds the set and refuses one that is for tests only, unless the
// caller runs one.
func MachineOf(id uint8, insecure bool) (*Machine, error) {
	machineMutex.Lock()
	defer machineMutex.Unlock()
	m, found := machines[id]
	if !found {
		for i := range sets {
			if sets[i].ID == id {
				var err error
				if m, err = newMachine(&sets[i]); err != nil {
					return nil, err
				}
				machines[id] = m
			}
		}
	}
	if m == nil {
		return nil, fault.New(fault.Message, "parameter set %d is unknown", id)
	}
	if m.Insecure && !insecure {
		return nil, fault.New(fault.Argument, "parameter set %q is insecure and for tests only", m.Name)
	}
	return m, nil
}

func newMachine(set *Set) (*Machine, error) {
	params, err := lattigo.NewParametersFromLiteral(lattigo.ParametersLiteral{
		LogN: set.LogN, Q: set.Moduli, P: []uint64{set.Special}, LogDefaultScale: set.ScaleBits,
	})
	if err != nil {
		return nil, err
	}
	m := &Machine{Set: set, n: 1 << set.LogN, top: len(set.Moduli) - 1, params: params}
	m.encoder = lattigo.NewEncoder(params)
	m.extender = ring.NewBasisExtender(params.RingQ(), params.RingP())
	m.scales = make([]rlwe.Scale, len(set.Moduli))
	scale := rlwe.NewScale(math.Exp2(float64(set.ScaleBits)))
	for level := m.top; level >= 0; level-- {
		m.scales[level] = scale
		scale = scale.Mul(scale).Div(rlwe.NewScale(set.Moduli[level]))
	}
	q := set.Moduli
	m.inverse = [3]uint64{inverseOf(q[0], q[1]), inverseOf(q[0], q[2]), inverseOf(q[1], q[2])}
	m.pool.New = func() any { p := params.RingQ().NewPoly(); return &p }
	return m, nil
}

func inverseOf(x, q uint64) uint64 {
	modulus := new(big.Int).SetUint64(q)
	return new(big.Int).ModInverse(new(big.Int).SetUint64(x), modulus).Uint64()
}

// Slots is how many numbers a ciphertext holds.
func (m *Machine) Slots() int { return m.n / 2 }

// rotations is how many rotation keys there are: one for each power of two.
func (m *Machine) rotations() int { return m.LogN - 1 }

func (m *Machine) ring(level int) *ring.Ring { return m.params.RingQ().AtLevel(level) }

func (m *Machine) checkLevel(level int) error {
	if level < 0 || level > m.top {
		return fault.New(fault.Argument, "level %d is not between 0 and %d", level, m.top)
	}
	return nil
}

// poly lends a polynomial of the highest level, with anything in it.
func (m *Machine) poly() *ring.Poly { return m.pool.Get().(*ring.Poly) }

// wiped takes it back.
func (m *Machine) wiped(p *ring.Poly) {
	p.Zero()
	m.pool.Put(p)
}
