package product

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
)

// ATOLL_VECTOR chooses the path; compare the paths by processor time.

// One party's work in one product with a Gram matrix, MNIST-sized, and in one
// product of small secret matrices.
func benchmarkRound(b *testing.B, name string, y Layout, leftBits, rightBits, shift int) {
	rng := rand.New(rand.NewPCG(1, 1))
	g := newGroup(b, name, 2)
	x := randomMatrix(rng, y.Rows, y.Inner, leftBits)
	m := randomMatrix(rng, y.Inner, y.Cols, rightBits)
	left := g.encrypt([]*Matrix{x, NewMatrix(y.Rows, y.Inner, 1)}, nil, shift, y)
	right, _ := EncodeRight(g.ring, m, 64*m.Words, y)
	message := make([]byte, ProductSize(g.ring, y))
	must(b, message, Multiply(message, g.key, []Term{{left, right}}, nil, 0, label("z"), nil))
	part := make([]byte, y.LeftPolys()*g.ring.PolySize())
	second := message[g.ring.residuesSize(y.Rows*y.Cols):]
	noise := g.ring.NoiseBits(2, rightBits+10)
	c := Clearing{2, int(g.ring.LogQ()) - 4 - 64, rightBits + 10, noise + 60, int(g.ring.LogQ()) - 4}
	b.Run("encode right", func(b *testing.B) {
		for b.Loop() {
			right, _ := EncodeRight(g.ring, m, 64*m.Words, y)
			right.Free()
		}
	})
	b.Run("multiply", func(b *testing.B) {
		for b.Loop() {
			Multiply(message, g.key, []Term{{left, right}}, nil, 0, label("z"), nil)
		}
	})
	streamed, _ := StreamRight(g.ring, m, rightBits+1, y)
	b.Run("multiply as large ones are, encoded on the way", func(b *testing.B) {
		for b.Loop() {
			Multiply(message, g.key, []Term{{left, streamed}}, nil, 0, label("z"), nil)
		}
	})
	b.Run("sum of products only", func(b *testing.B) {
		c0 := make([]uint64, y.OutPolys()*g.ring.Limbs*g.ring.N)
		c1 := make([]uint64, len(c0))
		for b.Loop() {
			g.ring.sumOfProducts(c0, c1, []Term{{left, right}}, y)
		}
	})
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			g.masked(g.secrets[0], second, y, c, label("m"))
		}
	})
	b.Run("encrypt", func(b *testing.B) {
		for b.Loop() {
			g.secrets[0].Encrypt(part, x, 64*x.Words, shift, y, label("c"), label("e"))
		}
	})
	b.Run("read ciphertext", func(b *testing.B) {
		for b.Loop() {
			NewCiphertext(g.ring, y, part, label("c"))
		}
	})
	b.Run("add product", func(b *testing.B) {
		sum, _ := NewProductSum(g.ring, y)
		for b.Loop() {
			sum.Add(message)
		}
	})
}

func BenchmarkWide(b *testing.B) {
	benchmarkRound(b, "wide4", Layout{29, 717, 717, 29, 16, 17, false}, 40, 24, 68)
}

func BenchmarkDeep(b *testing.B) {
	benchmarkRound(b, "deep8", Layout{29, 29, 145, 29, 10, 56, false}, 116, 116, 70)
}

// One party's rows times an encrypted sketch, as many as one of six has in the
// largest data set, encoded on the way: columns first, rows second.
func BenchmarkStreamed(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	g := newGroup(b, "wide4", 2)
	for _, y := range []Layout{{26, 5943, 417, 13, 78, 8, false}, {26, 5943, 417, 9, 113, 8, false}, {26, 417, 5943, 13, 8, 78, false}} {
		x := randomMatrix(rng, y.Rows, y.Inner, 40)
		left := g.encrypt([]*Matrix{x, NewMatrix(y.Rows, y.Inner, 1)}, nil, 60, y)
		right, _ := StreamRight(g.ring, randomMatrix(rng, y.Inner, y.Cols, 20), 20, y)
		c0 := make([]uint64, y.OutPolys()*g.ring.Limbs*g.ring.N)
		c1 := make([]uint64, len(c0))
		limb := make([]uint64, g.ring.N)
		b.Run(fmt.Sprint(y, " encode only, one thread"), func(b *testing.B) {
			for b.Loop() {
				for p := range y.RightPolys() {
					for l := range g.ring.Limbs {
						right.encode(limb, p/y.colBlocks(), p%y.colBlocks(), l)
					}
				}
			}
		})
		b.Run(fmt.Sprint(y, " sum of products"), func(b *testing.B) {
			before := processorSeconds()
			for b.Loop() {
				terms := []Term{{left, right}}
				g.ring.chosenSum(terms)(c0, c1, terms, y)
			}
			b.ReportMetric((processorSeconds()-before)/float64(b.N), "cpu-s/op")
		})
	}
}

func processorSeconds() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Sec) + float64(usage.Utime.Usec)/1e6
}
