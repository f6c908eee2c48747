package product

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"
)

// chainLayouts are one of matrices and one of entries.
func chainLayouts() []Layout {
	return []Layout{
		{Rows: 5, Inner: 4, Cols: 3, BlockRows: 5, BlockInner: 2, BlockCols: 3},
		{Rows: 7, Inner: 1, Cols: 2, BlockRows: 4, BlockInner: 1, BlockCols: 2, Entrywise: true},
	}
}

// publicProduct is what everybody computes of a ciphertext and a public matrix of up to 90 bits.
func publicProduct(t *testing.T, left *Ciphertext, public *Matrix, second []byte) []byte {
	right, err := EncodeRight(left.ring, public, 90, left.layout)
	out := make([]byte, ProductSize(left.ring, left.layout))
	return must(t, out, AddPublic(out, second, []Term{{left, must(t, right, err)}}))
}

func TestPublicProductsAreAddedWithoutAnythingDrawn(t *testing.T) {
	for _, y := range chainLayouts() {
		g, rng := newGroup(t, "deep5", 2), rand.New(rand.NewPCG(71, 72))
		r := g.ring
		share, public := randomMatrix(rng, y.Rows, y.Inner, 90), randomMatrix(rng, y.rightRows(), y.Cols, 70)
		right, err := EncodeRight(r, public, 70, y)
		terms := []Term{{g.encrypt([]*Matrix{share, share}, nil, 10, y), must(t, right, err)}}
		plain := make([]byte, ProductSize(r, y))
		head := r.residuesSize(y.Rows * y.Cols)
		nothing := make([]byte, len(plain)-head)
		first, again := make([]byte, len(plain)), make([]byte, len(plain))
		for _, out := range [][]byte{first, again} {
			if err := AddPublic(out, nothing, terms); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first, again) {
			t.Fatal("the same public product twice is not the same")
		}
		if err := multiply(plain, g.key, terms, nil, 0, label("zero"), nil, false); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(plain[head:], first[head:]) {
			t.Fatal("second halves are not those of the product")
		}
		// Added to itself, it is the product with twice the matrix.
		twice := make([]byte, len(plain))
		if err := AddPublic(twice, first[head:], terms); err != nil {
			t.Fatal(err)
		}
		sum, err := NewProductSum(r, y)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := sum.Add(first); err != nil {
				t.Fatal(err)
			}
		}
		want := make([]byte, len(nothing))
		if err := sum.Second(want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, twice[head:]) {
			t.Fatal("second halves were not added")
		}
		if AddPublic(first, nothing[1:], terms) == nil || AddPublic(first[1:], nothing, terms) == nil ||
			AddPublic(first, nothing, nil) == nil {
			t.Fatal("messages of the wrong size passed")
		}
	}
}

func TestProductsInTheClearAreExact(t *testing.T) {
	for _, y := range chainLayouts() {
		r, rng := mustGet("deep5"), rand.New(rand.NewPCG(73, 74))
		sum, err := NewProductSum(r, y)
		if err != nil {
			t.Fatal(err)
		}
		x, right := randomMatrix(rng, y.Rows, y.Inner, 150), randomMatrix(rng, y.rightRows(), y.Cols, 100)
		const shift = 70
		if err := sum.AddProduct(x, right, shift); err != nil {
			t.Fatal(err)
		}
		count := y.Rows * y.Cols
		for i := range y.Rows {
			for k := range y.Cols {
				want := new(big.Int)
				for j := range y.Inner {
					from := j
					if y.Entrywise {
						from = i
					}
					want.Add(want, new(big.Int).Mul(toBig(x.At(i, j)), toBig(right.At(from, k))))
				}
				want.Lsh(want, shift)
				for l, q := range r.Moduli {
					residue := new(big.Int).Mod(want, new(big.Int).SetUint64(q)).Uint64()
					if got := sum.first[l*count+i*y.Cols+k]; got != residue {
						t.Fatalf("entry %d, %d modulo the modulus %d: %d, not %d", i, k, l, got, residue)
					}
				}
			}
		}
		if sum.AddProduct(right, x, shift) == nil || sum.AddProduct(x, right, -1) == nil {
			t.Fatal("a product that does not fit passed")
		}
	}
}
