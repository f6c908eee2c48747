package ckks

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

const (
	paperSet = 1
	testSet  = 129
	flooding = 16
)

// group is all parties of a test in one place.
type group struct {
	m       *Machine
	secrets []*Secret
	keys    *Keys
	totals  KeyTotals
	common  []byte
	counter int
}

func label(parts ...any) []byte {
	digest := sha256.Sum256(fmt.Append(nil, parts...))
	return digest[:]
}

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	groups     = map[uint8]*group{}
	groupMutex sync.Mutex
)

// groupOf makes three parties and all their keys, once.
func groupOf(t testing.TB, set uint8) *group {
	t.Helper()
	groupMutex.Lock()
	defer groupMutex.Unlock()
	if groups[set] == nil {
		groups[set] = newGroup(t, set, 3)
	}
	return groups[set]
}

func newGroup(t testing.TB, set uint8, parties int) *group {
	t.Helper()
	m := must[*Machine](t)(MachineOf(set, true))
	g := &group{m: m, common: label("common")}
	for i := range parties {
		g.secrets = append(g.secrets, must[*Secret](t)(NewSecret(m, label("secret", i))))
	}
	g.totals.Public = g.keyTotal(t, KindPublic, 0, nil)
	g.totals.Relinearisation1 = g.keyTotal(t, KindRelinearisation1, 0, nil)
	g.totals.Relinearisation2 = g.keyTotal(t, KindRelinearisation2, 0, g.totals.Relinearisation1)
	for step := 1; step < m.Slots(); step *= 2 {
		g.totals.Rotations = append(g.totals.Rotations, g.keyTotal(t, KindRotation, step, nil))
	}
	g.keys = must[*Keys](t)(NewKeys(m, g.common, g.totals))
	return g
}

func (g *group) keyTotal(t testing.TB, kind Kind, step int, round1 []byte) []byte {
	t.Helper()
	return g.total(t, kind, g.m.top, step, func(i int, out []byte) error {
		return g.secrets[i].KeyPart(out, kind, step, g.common, label("key seed", i), round1)
	})
}

// total makes every party's part and adds them.
func (g *group) total(t testing.TB, kind Kind, level, step int, part func(i int, out []byte) error) []byte {
	t.Helper()
	size := must[int](t)(Size(g.m.ID, kind, level, step, true))
	parts := make([][]byte, len(g.secrets))
	for i := range parts {
		parts[i] = make([]byte, size)
		check(t, part(i, parts[i]))
	}
	out := make([]byte, size)
	check(t, Total(g.m.ID, parts, out, true))
	return out
}

func (g *group) seed() []byte {
	g.counter++
	return label("seed", g.counter)
}

func (g *group) encrypt(t testing.TB, values []float64) *Ciphertext {
	t.Helper()
	return must[*Ciphertext](t)(g.keys.Encrypt(values, g.m.top, g.seed(), 0))
}

func (g *group) open(t testing.TB, x *Ciphertext) []float64 {
	t.Helper()
	return g.openFlooded(t, x, 1)
}

func (g *group) openFlooded(t testing.TB, x *Ciphertext, width int) []float64 {
	t.Helper()
	seed := g.seed()
	total := g.total(t, KindOpening, x.Level(), width, func(i int, out []byte) error {
		return g.secrets[i].OpeningPart(out, x, label(seed, i), width, g.m.Slots())
	})
	values := make([]float64, g.m.Slots())
	check(t, Opened(x, total, values))
	return values
}

func (g *group) refreshed(t testing.TB, x *Ciphertext) *Ciphertext {
	t.Helper()
	seed, common := g.seed(), g.seed()
	total := g.total(t, KindRefresh, x.Level(), 0, func(i int, out []byte) error {
		return g.secrets[i].RefreshPart(out, x, common, label(seed, i))
	})
	return must[*Ciphertext](t)(Refreshed(x, total, common, len(g.secrets)))
}

// numbers are uniform in [-most, most].
func numbers(seed uint64, count int, most float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	values := make([]float64, count)
	for i := range values {
		values[i] = most * (2*rng.Float64() - 1)
	}
	return values
}

func farthest(t testing.TB, got []float64, want func(i int) float64) float64 {
	t.Helper()
	most := 0.0
	for i, value := range got {
		most = math.Max(most, math.Abs(value-want(i)))
	}
	return most
}

// near demands all slots within a bound, and says how far the farthest is.
func near(t testing.TB, what string, got []float64, bound float64, want func(i int) float64) {
	t.Helper()
	most := farthest(t, got, want)
	if !(most <= bound) {
		t.Errorf("%s: off by %.3g, more than %.3g", what, most, bound)
	}
	t.Logf("%s: off by at most %.3g", what, most)
}
