package product

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"atoll/core/vector"
)

// onEveryPath runs a test on every path that this machine has.
func onEveryPath(t *testing.T, test func(t *testing.T, path vector.Path)) {
	t.Helper()
	for _, path := range vector.Paths {
		t.Run(path.Name, func(t *testing.T) {
			if !path.Here {
				t.Skipf("needs %s", path.Needs)
			}
			test(t, path)
		})
	}
}

// written is everything that the roles sent, in order, as a name and a digest.
type written []string

func (w *written) note(what string, data []byte) {
	*w = append(*w, fmt.Sprintf("%s %x", what, sha256.Sum256(data)))
}

func (w *written) noteMatrix(what string, m *Matrix) { w.note(what, []byte(fmt.Sprint(m.Data))) }

// The layouts: one block and many, blocks that do not fill their places, short right sides (which fall into
// parts) and long ones (which do not), one row and one column, odd numbers of entries.
var pathLayouts = []Layout{
	{Rows: 16, Inner: 46, Cols: 44, BlockRows: 16, BlockInner: 23, BlockCols: 22},
	{Rows: 9, Inner: 53, Cols: 41, BlockRows: 5, BlockInner: 7, BlockCols: 9},
	{Rows: 3, Inner: 130, Cols: 65, BlockRows: 1, BlockInner: 64, BlockCols: 64},
	{Rows: 1, Inner: 5, Cols: 1, BlockRows: 1, BlockInner: 4, BlockCols: 1},
	{Rows: 13, Inner: 70, Cols: 20, BlockRows: 13, BlockInner: 10, BlockCols: 20},
	{Rows: 70, Inner: 1, Cols: 5, BlockRows: 35, BlockInner: 1, BlockCols: 3, Entrywise: true},
}

// everyMessage plays the whole round of doc.go with two parties, with both kinds of right sides, two terms, a
// matrix added in the clear, and one of many words, and gives all that was written.
func everyMessage(t *testing.T, r *Ring, y Layout) written {
	var out written
	rng := rand.New(rand.NewPCG(61, 62))
	g := newGroupIn(t, r, 2)
	common := label("common key", r.Name)
	for i, secret := range g.secrets {
		part := make([]byte, r.PolySize())
		out.note("key share", must(t, part, secret.PublicKeyShare(part, common, label("key error", i))))
	}
	key := make([]byte, r.PolySize())
	out.note("key", must(t, key, g.key.Write(key)))
	x, public := randomMatrix(rng, y.Rows, y.Inner, 30), randomMatrix(rng, y.Rows, y.Inner, 20)
	step := label("common", 1)
	var parts [][]byte
	for i, secret := range g.secrets {
		part := make([]byte, y.LeftPolys()*r.PolySize())
		parts = append(parts, must(t, part, secret.Encrypt(part, x, 64, 40, y, step, label("error", i))))
		out.note("encryption", part)
	}
	first := make([]byte, y.LeftPolys()*r.PolySize())
	out.note("ciphertext", must(t, first, Assemble(first, r, public, 40, y, parts)))
	left, err := NewCiphertext(r, y, first, step)
	must(t, left, err)

	narrow, wide := randomMatrix(rng, y.rightRows(), y.Cols, 20), randomMatrix(rng, y.rightRows(), y.Cols, 90)
	plain := randomMatrix(rng, y.Rows, y.Cols, 60)
	makers := []func(*Ring, *Matrix, int, Layout) (*Right, error){EncodeRight, StreamRight}
	sum, err := NewProductSum(r, y)
	must(t, sum, err)
	for i, make1 := range makers {
		few, err := make1(r, narrow, 20, y)
		must(t, few, err)
		many, err := make1(r, wide, 90, y)
		must(t, many, err)
		for j, terms := range [][]Term{{{left, few}}, {{left, few}, {left, few}}, {{left, few}, {left, many}}} {
			message := make([]byte, ProductSize(r, y))
			must(t, message, Multiply(message, g.key, terms, plain, 64, label("zero", i, j), []byte("step")))
			out.note("product", message)
			if j == 0 {
				must(t, sum, sum.Add(message))
			}
		}
	}
	second := g.second(sum)
	out.note("second halves", second)
	noise := r.NoiseBits(2, 40)
	c := Clearing{2, int(r.LogQ()) - 4 - 64, 40, noise + 60, int(r.LogQ()) - 4}
	for i, secret := range g.secrets {
		message, share := g.masked(secret, second, y, c, label("mask", i))
		out.note("masked share", message)
		out.noteMatrix("share", share)
		must(t, sum, sum.AddShare(message))
	}
	result := NewMatrix(y.Rows, y.Cols, c.ShareWords())
	out.noteMatrix("result", must(t, result, sum.Clear(result, c)))
	return out
}

// The path that the environment asks for is the one that is taken.
func TestTheForcedPathIsTaken(t *testing.T) {
	asked := os.Getenv(vector.Variable)
	if asked == "" || asked == "auto" {
		t.Skipf("%s forces none", vector.Variable)
	}
	r, err := Get("wide4")
	must(t, r, err)
	if r.Path() != asked {
		t.Fatalf("the ring computes on %q, %q is asked for", r.Path(), asked)
	}
}

// ringsOn makes all rings of the table on one path.
func ringsOn(t *testing.T, path vector.Path) map[string]*Ring {
	t.Helper()
	rings := map[string]*Ring{}
	for _, parameters := range Table {
		r, err := newRing(parameters, path)
		rings[parameters.Name] = must(t, r, err)
	}
	return rings
}

// recordedMessages is the digest of all that is written below, on any processor: an island with another one
// takes part in the same study.
const recordedMessages = "d255775c87958ad6dc52f6eed202db47671d9f0da1b747886653b4e7470f02fe"

// Not a byte of any message depends on the path: every ring, every layout, every kind of product.
func TestMessagesAreTheSameOnEveryPath(t *testing.T) {
	want := map[string]written{}
	scalar, err := vector.Choose("scalar")
	must(t, scalar, err)
	for name, r := range ringsOn(t, scalar) {
		for i, y := range pathLayouts {
			want[fmt.Sprint(name, i)] = everyMessage(t, r, y)
		}
	}
	// Maps are printed in the order of their keys.
	if got := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, want))); got != recordedMessages {
		t.Errorf("the messages have the digest %s and not that of the record", got)
	}
	onEveryPath(t, func(t *testing.T, path vector.Path) {
		if path.Name == "scalar" {
			return // it gave what is wanted
		}
		for name, r := range ringsOn(t, path) {
			if r.Path() != path.Name {
				t.Fatalf("the ring computes on %q", r.Path())
			}
			for i, y := range pathLayouts {
				if got := everyMessage(t, r, y); !slices.Equal(got, want[fmt.Sprint(name, i)]) {
					t.Fatalf("ring %s, layout %v:\n%v\nand not\n%v", name, y, got, want[fmt.Sprint(name, i)])
				}
			}
		}
	})
}

// Some of the layouts above fall into parts where the path has them, some do not.
func TestShortRightSidesFallIntoParts(t *testing.T) {
	onEveryPath(t, func(t *testing.T, path vector.Path) {
		r, err := newRing(Table[0], path)
		must(t, r, err)
		_, can := r.arithmetic[0].(vector.Parted)
		if can == (path.Name == "scalar") {
			t.Fatal("the vector paths make parts, and no other")
		}
		for _, y := range pathLayouts {
			right, err := StreamRight(r, NewMatrix(y.rightRows(), y.Cols, 1), 20, y)
			must(t, right, err)
			short := y.BlockInner*y.BlockCols <= 2048 && !y.Entrywise
			if r.fallsIntoParts([]Term{{nil, right}}) != (can && short) {
				t.Fatalf("layout %v", y)
			}
			right.narrow = false
			if r.fallsIntoParts([]Term{{nil, right}}) {
				t.Fatal("wide integers do not fit the words of parts")
			}
		}
	})
}
