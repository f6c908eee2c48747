package product

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The group plays all parties and the coordinator in one process.
type group struct {
	t       testing.TB
	ring    *Ring
	secrets []*Secret
	key     *PublicKey
	counter int
}

func label(parts ...any) []byte {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return sum[:]
}

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func newGroup(t testing.TB, name string, parties int) *group {
	return newGroupIn(t, mustGet(name), parties)
}

func newGroupIn(t testing.TB, r *Ring, parties int) *group {
	g := &group{t: t, ring: r}
	common := label("common key", r.Name)
	var parts [][]byte
	for i := range parties {
		secret, err := NewSecret(r, label("secret", i))
		g.secrets = append(g.secrets, must(t, secret, err))
		part := make([]byte, r.PolySize())
		parts = append(parts, must(t, part, secret.PublicKeyShare(part, common, label("key error", i))))
	}
	key, err := NewPublicKey(r, parts, common)
	g.key = must(t, key, err)
	return g
}

func mustGet(name string) *Ring {
	r, err := Get(name)
	if err != nil {
		panic(err)
	}
	return r
}

func (g *group) next() int { g.counter++; return g.counter }

// encrypt encrypts the sum of the shares (one per party) times 2^shift.
func (g *group) encrypt(shares []*Matrix, public *Matrix, shift int, y Layout) *Ciphertext {
	step := g.next()
	common := label("common", step)
	var parts [][]byte
	for i, secret := range g.secrets {
		part := make([]byte, y.LeftPolys()*g.ring.PolySize())
		err := secret.Encrypt(part, shares[i], 64*shares[i].Words, shift, y, common, label("error", step, i))
		parts = append(parts, must(g.t, part, err))
	}
	first := make([]byte, y.LeftPolys()*g.ring.PolySize())
	must(g.t, first, Assemble(first, g.ring, public, shift, y, parts))
	c, err := NewCiphertext(g.ring, y, first, common)
	return must(g.t, c, err)
}

func (g *group) product(left *Ciphertext, rights []*Matrix, plain []*Matrix) *ProductSum {
	step := g.next()
	sum, err := NewProductSum(g.ring, left.layout)
	must(g.t, sum, err)
	for i, matrix := range rights {
		right, err := EncodeRight(g.ring, matrix, 64*matrix.Words, left.layout)
		must(g.t, right, err)
		var added *Matrix
		if plain != nil {
			added = plain[i]
		}
		message := make([]byte, ProductSize(g.ring, left.layout))
		must(g.t, message, Multiply(message, g.key, []Term{{left, right}}, added, 512, label("zero", step, i), nil))
		if err := sum.Add(message); err != nil {
			g.t.Fatal(err)
		}
	}
	return sum
}

// refresh returns every party's share and the coordinator's, last.
func (g *group) refresh(sum *ProductSum, c Clearing) []*Matrix {
	step := g.next()
	second := g.second(sum)
	var shares []*Matrix
	for i, secret := range g.secrets {
		message, share := g.masked(secret, second, sum.layout, c, label("mask", step, i))
		shares = append(shares, share)
		if err := sum.AddShare(message); err != nil {
			g.t.Fatal(err)
		}
	}
	public := NewMatrix(sum.layout.Rows, sum.layout.Cols, c.ShareWords())
	return append(shares, must(g.t, public, sum.Clear(public, c)))
}

func (g *group) second(sum *ProductSum) []byte {
	second := make([]byte, sum.layout.OutPolys()*g.ring.PolySize())
	return must(g.t, second, sum.Second(second))
}

func (g *group) masked(secret *Secret, second []byte, y Layout, c Clearing, seed []byte) ([]byte, *Matrix) {
	message, share := make([]byte, MaskedSize(g.ring, y)), NewMatrix(y.Rows, y.Cols, c.ShareWords())
	must(g.t, message, secret.Refresh(message, share, second, y, c, seed, nil))
	return message, share
}

func toBig(x []uint64) *big.Int {
	value := new(big.Int)
	for k := len(x) - 1; k >= 0; k-- {
		value.Lsh(value, 64)
		value.Or(value, new(big.Int).SetUint64(x[k]))
	}
	if int64(x[len(x)-1]) < 0 {
		value.Sub(value, new(big.Int).Lsh(big.NewInt(1), uint(64*len(x))))
	}
	return value
}

func fromBig(out []uint64, value *big.Int) {
	wrapped := new(big.Int).And(value, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(64*len(out))), big.NewInt(1)))
	for k := range out {
		out[k] = new(big.Int).Rsh(wrapped, uint(64*k)).Uint64()
	}
}

func randomMatrix(rng *rand.Rand, rows, cols, bits int) *Matrix {
	m := NewMatrix(rows, cols, bits/64+1)
	for i := range rows {
		for j := range cols {
			value := new(big.Int)
			for range bits/64 + 1 {
				value.Lsh(value, 64).Or(value, new(big.Int).SetUint64(rng.Uint64()))
			}
			value.Mod(value, new(big.Int).Lsh(big.NewInt(1), uint(bits+1)))
			value.Sub(value, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
			fromBig(m.At(i, j), value)
		}
	}
	return m
}

func sumOf(matrices []*Matrix) [][]*big.Int {
	first := matrices[0]
	out := make([][]*big.Int, first.Rows)
	for i := range out {
		out[i] = make([]*big.Int, first.Cols)
		for j := range out[i] {
			out[i][j] = new(big.Int)
			for _, m := range matrices {
				out[i][j].Add(out[i][j], toBig(m.At(i, j)))
			}
		}
	}
	return out
}

func timesBig(x, y [][]*big.Int) [][]*big.Int {
	out := make([][]*big.Int, len(x))
	for i := range x {
		out[i] = make([]*big.Int, len(y[0]))
		for k := range y[0] {
			out[i][k] = new(big.Int)
			for j := range y {
				out[i][k].Add(out[i][k], new(big.Int).Mul(x[i][j], y[j][k]))
			}
		}
	}
	return out
}

// nearly checks got = round(want 2^shift / 2^truncate) up to the parties' roundings.
func nearly(t *testing.T, got, want [][]*big.Int, shift, truncate, slack int) {
	t.Helper()
	for i := range want {
		for k := range want[i] {
			exact := new(big.Int).Lsh(want[i][k], uint(shift))
			error := new(big.Int).Sub(new(big.Int).Lsh(got[i][k], uint(truncate)), exact)
			bound := new(big.Int).Lsh(big.NewInt(int64(slack)), uint(truncate))
			if error.CmpAbs(bound) > 0 {
				t.Fatalf("entry (%d, %d) is wrong by 2^%d units of the last place", i, k, error.BitLen()-truncate)
			}
		}
	}
}
