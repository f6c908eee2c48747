package vector

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// The largest and the smallest prime of product's table.
var primes = []uint64{0xffffffff58001, 0xfffffffca8001}

func subRing(t testing.TB, logN int, q uint64) *ring.SubRing {
	t.Helper()
	r, err := ring.NewRing(1<<logN, []uint64{q})
	if err != nil {
		t.Fatal(err)
	}
	return r.SubRings[0]
}

// vectorised runs a check on every path of this machine but the scalar one, to which it is compared.
func vectorised(t *testing.T, logNs []int, check func(t *testing.T, m, want Modulus, q uint64, n int)) {
	t.Helper()
	for _, path := range Paths {
		if path.Name == "scalar" {
			continue
		}
		t.Run(path.Name, func(t *testing.T) {
			if !path.Here {
				t.Skipf("needs %s", path.Needs)
			}
			for _, logN := range logNs {
				for _, q := range primes {
					sub := subRing(t, logN, q)
					check(t, path.New(sub), newScalar(sub), q, 1<<logN)
				}
			}
		})
	}
}

// inputs are polynomials at the edges of the range and random ones.
func inputs(n int, q uint64) map[string][]uint64 {
	rng := rand.New(rand.NewPCG(31, q))
	fill := func(value func(i int) uint64) []uint64 {
		p := make([]uint64, n)
		for i := range p {
			p[i] = value(i)
		}
		return p
	}
	edges := []uint64{0, 1, 2, q/2 - 1, q / 2, q/2 + 1, q/2 + 2, q - 2, q - 1}
	return map[string][]uint64{
		"zero":           fill(func(int) uint64 { return 0 }),
		"largest":        fill(func(int) uint64 { return q - 1 }),
		"half":           fill(func(int) uint64 { return q / 2 }),
		"half and one":   fill(func(int) uint64 { return q/2 + 1 }),
		"both halves":    fill(func(i int) uint64 { return q/2 + uint64(i)&1 }),
		"edges":          fill(func(int) uint64 { return edges[rng.IntN(len(edges))] }),
		"small":          fill(func(int) uint64 { return (q + rng.Uint64N(5) - 2) % q }),
		"random":         fill(func(int) uint64 { return rng.Uint64N(q) }),
		"random again":   fill(func(int) uint64 { return rng.Uint64N(q) }),
		"one in the end": fill(func(i int) uint64 { return uint64(i / (n - 1)) }),
	}
}

var allSizes = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}

func TestTransformsEqualLattigos(t *testing.T) {
	vectorised(t, allSizes, func(t *testing.T, m, want Modulus, q uint64, n int) {
		for name, p := range inputs(n, q) {
			for direction, transform := range map[string][2]func([]uint64){
				"forward": {m.Forward, want.Forward}, "backward": {m.Backward, want.Backward},
			} {
				got, expected := slices.Clone(p), slices.Clone(p)
				transform[0](got)
				transform[1](expected)
				if !slices.Equal(got, expected) {
					t.Fatalf("%s transform of %q, %d points modulo %x", direction, name, n, q)
				}
			}
		}
	})
}

// The worst inputs of a transform are those that the other direction makes of the edges: all intermediate values
// are large at once. Random ones come close in many rounds.
func TestManyTransformsThereAndBack(t *testing.T) {
	vectorised(t, []int{13}, func(t *testing.T, m, want Modulus, q uint64, n int) {
		rng := rand.New(rand.NewPCG(5, q))
		for range 100 {
			p := make([]uint64, n)
			for i := range p {
				p[i] = (q/2 + rng.Uint64N(4)) % q
			}
			got, expected := slices.Clone(p), slices.Clone(p)
			m.Backward(got)
			want.Backward(expected)
			if !slices.Equal(got, expected) {
				t.Fatal("backward")
			}
			m.Forward(got)
			if !slices.Equal(got, p) {
				t.Fatal("there and back")
			}
		}
	})
}

// operandResidues multiplies an operand by one, to compare it as residues.
func operandResidues(m Modulus, p []uint64) []uint64 {
	ones := make([]uint64, Tile)
	for i := range ones {
		ones[i] = 1
	}
	m.Operand(ones)
	out, other := make([]uint64, len(p)), make([]uint64, Tile)
	for from := 0; from < len(p); from += Tile {
		var s Sums
		m.Accumulate(&s, p[from:], p[from:], ones, 1, 0, 0)
		m.Reduce(out[from:from+Tile], other, &s)
	}
	return out
}

func TestShortTransformsEqualWholeOnes(t *testing.T) {
	vectorised(t, []int{9, 12, 13, 14}, func(t *testing.T, m, want Modulus, q uint64, n int) {
		for _, used := range []int{1, 2, 7, 8, 9, 16, 17, 100, 256, 257, 511, 512, 1024, 1025, 2047, 2049, n/2 + 1, n} {
			if used > n {
				continue
			}
			for name, p := range inputs(n, q) {
				expected := slices.Clone(p)
				clear(expected[used:])
				want.Forward(expected)
				m.ForwardOperand(p, used)
				if !slices.Equal(operandResidues(m, p), expected) {
					t.Fatalf("%q with %d coefficients of %d modulo %x", name, used, n, q)
				}
			}
		}
	})
}

func TestMultiplications(t *testing.T) {
	vectorised(t, []int{10}, func(t *testing.T, m, want Modulus, q uint64, n int) {
		for first, x := range inputs(n, q) {
			for second, y := range inputs(n, q) {
				factor := slices.Clone(y)
				m.Factor(factor)
				for name, run := range map[string][2]func(a, b, c []uint64){
					"multiply":     {m.Multiply, want.Multiply},
					"multiply-add": {m.MultiplyAdd, want.MultiplyAdd},
					"multiply-sub": {m.MultiplySub, want.MultiplySub},
				} {
					for third, sum := range inputs(n, q) {
						expected := slices.Clone(sum)
						run[0](sum, x, factor)
						run[1](expected, x, y)
						if !slices.Equal(sum, expected) {
							t.Fatalf("%s: %q by %q into %q modulo %x", name, first, second, third, q)
						}
					}
				}
			}
		}
	})
}

func TestAdditions(t *testing.T) {
	vectorised(t, []int{4}, func(t *testing.T, m, want Modulus, q uint64, _ int) {
		for _, count := range []int{0, 1, 2, 3, 4, 5, 7, 8, 101} {
			for _, x := range inputs(count+2, q) {
				for _, y := range inputs(count+2, q) {
					got, expected := slices.Clone(x[:count]), slices.Clone(x[:count])
					m.Add(got, y[:count])
					want.Add(expected, y[:count])
					if !slices.Equal(got, expected) {
						t.Fatalf("%d values", count)
					}
				}
			}
		}
	})
}

// Sums of as many products as are allowed, where every product has the largest magnitude and the same sign, and
// of all counts about the unrolled loop.
func TestSumsOfProducts(t *testing.T) {
	counts := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, MaxBlocks - 1, MaxBlocks}
	vectorised(t, []int{9}, func(t *testing.T, m, want Modulus, q uint64, n int) {
		values := inputs(n, q)
		for _, pair := range [][2]string{
			{"half", "half"}, {"half", "half and one"}, {"half and one", "half and one"}, {"largest", "largest"},
			{"edges", "edges"}, {"random", "random again"}, {"both halves", "half"}, {"zero", "largest"},
		} {
			x, b := values[pair[0]], values[pair[1]]
			z := values["random"]
			left, other, right := slices.Clone(x), slices.Clone(z), slices.Clone(b)
			for _, p := range [][]uint64{left, other, right} {
				m.Operand(p)
			}
			for _, count := range counts {
				var got, expected Sums
				m.Accumulate(&got, left, other, right, count, 0, 0)
				want.Accumulate(&expected, x, z, b, count, 0, 0)
				var out, truth [2][Tile]uint64
				m.Reduce(out[0][:], out[1][:], &got)
				want.Reduce(truth[0][:], truth[1][:], &expected)
				if out != truth {
					t.Fatalf("%d products of %v modulo %x", count, pair, q)
				}
			}
		}
	})
}

// The scalar sums, to which the others are compared, against big integers.
func TestScalarSumsEqualBigIntegers(t *testing.T) {
	q := primes[0]
	m := newScalar(subRing(t, 9, q))
	values := inputs(Tile, q)
	x, b := values["random"], values["largest"]
	var s Sums
	m.Accumulate(&s, x, b, b, MaxBlocks, 0, 0)
	var first, second [Tile]uint64
	m.Reduce(first[:], second[:], &s)
	for i := range Tile {
		for _, pair := range [][2]uint64{{first[i], x[i]}, {second[i], b[i]}} {
			want := new(big.Int).Mul(new(big.Int).SetUint64(pair[1]), new(big.Int).SetUint64(b[i]))
			want.Mul(want, big.NewInt(MaxBlocks)).Mod(want, new(big.Int).SetUint64(q))
			if want.Uint64() != pair[0] {
				t.Fatalf("point %d", i)
			}
		}
	}
}

// Products of parts equal those of whole transforms, for several rows, blocks and coefficients of either sign.
func TestPartsEqualWholeTransforms(t *testing.T) {
	vectorised(t, []int{13}, func(t *testing.T, m, want Modulus, q uint64, n int) {
		parted, ok := m.(Parted)
		if !ok {
			t.Skip("this path makes whole transforms only")
		}
		rng := rand.New(rand.NewPCG(7, q))
		const rows, inner = 2, 7
		lefts, operands := make([]uint64, rows*inner*n), make([]uint64, rows*inner*n)
		for i := range lefts {
			lefts[i] = rng.Uint64N(q)
		}
		copy(operands, lefts)
		m.Operand(operands)
		for _, shape := range [][2]int{
			{32, 32}, {32, 17}, {64, 33}, {256, 100}, {512, 1}, {512, 257}, {512, 272}, {512, 512}, {1024, 1024}, {PartMax, 1025}, {PartMax, PartMax},
		} {
			size, used := shape[0], shape[1]
			small, rights := make([]uint64, inner*size), make([]uint64, inner*n)
			for j := range inner {
				for i := range used {
					value := rng.Int64N(1<<51) - 1<<50
					if j == 0 {
						value = 1<<50 - 1
					}
					small[j*size+i] = parted.Small(value)
					rights[j*n+i] = uint64(value+int64(q)) % q
				}
				want.Forward(rights[j*n : (j+1)*n])
			}
			sums := NewPartSums(size, used, rows)
			for part := range n / size {
				at := part * size
				sums.Start(part)
				parted.AddParts(sums, small, size, operands[at:], operands[at:], n, inner)
				for row := range rows {
					got, twice := make([]uint64, size), make([]uint64, size)
					parted.ReduceParts(got, twice, sums, row)
					expected := make([]uint64, size)
					for j := range inner {
						left := lefts[(row*inner+j)*n+at:]
						want.MultiplyAdd(expected, left, rights[j*n+at:])
					}
					if !slices.Equal(got, expected) || !slices.Equal(twice, expected) {
						t.Fatalf("part %d of size %d, row %d", part, size, row)
					}
				}
			}
		}
	})
}

func TestPacking(t *testing.T) {
	vectorised(t, []int{4}, func(t *testing.T, m, want Modulus, q uint64, _ int) {
		for count := range 70 {
			for name, p := range inputs(count+2, q) {
				p = p[:count]
				got, expected := make([]byte, PackedSize(count)+1), make([]byte, PackedSize(count)+1)
				m.Pack(got[:PackedSize(count)], p)
				want.Pack(expected[:PackedSize(count)], p)
				if !bytes.Equal(got, expected) {
					t.Fatalf("%d residues, %q, are packed to other bytes", count, name)
				}
				back, sum := make([]uint64, count), slices.Clone(p)
				if !m.Unpack(back, got[:PackedSize(count)]) || !slices.Equal(back, p) {
					t.Fatalf("%d residues, %q, are unpacked to others", count, name)
				}
				if !m.UnpackAdd(sum, got[:PackedSize(count)]) {
					t.Fatal("refused")
				}
				want.Add(back, p)
				if !slices.Equal(sum, back) {
					t.Fatalf("%d residues, %q, are added up wrongly", count, name)
				}
				refusesLarge(t, m, want, p, q)
			}
		}
	})
}

// refusesLarge puts a residue that is not below the modulus at every place.
func refusesLarge(t *testing.T, m, want Modulus, p []uint64, q uint64) {
	t.Helper()
	data := make([]byte, PackedSize(len(p)))
	for i := range p {
		for _, value := range []uint64{q, 1<<Bits - 1} {
			wrong := slices.Clone(p)
			wrong[i] = value
			want.Pack(data, wrong)
			if m.Unpack(wrong, data) || m.UnpackAdd(wrong, data) || want.Unpack(wrong, data) || want.UnpackAdd(wrong, data) {
				t.Fatalf("%x at place %d of %d was accepted", value, i, len(p))
			}
		}
	}
	if len(p)%2 == 1 {
		want.Pack(data, p)
		data[len(data)-1] |= 0xf0 // the four bits that an odd number leaves over
		if m.Unpack(slices.Clone(p), data) || want.Unpack(slices.Clone(p), data) {
			t.Fatalf("bits beyond %d residues were accepted", len(p))
		}
	}
}

func TestChoosing(t *testing.T) {
	if names := Here(); names[len(names)-1] != "scalar" {
		t.Fatalf("%v: every machine has the scalar path, last", names)
	}
	fastest, err := Choose("auto")
	if err != nil || fastest.Name != Here()[0] {
		t.Fatalf("auto is %q, not the first of %v", fastest.Name, Here())
	}
	for _, path := range Paths {
		t.Setenv(Variable, path.Name)
		got, err := Chosen()
		if path.Here && (err != nil || got.Name != path.Name) {
			t.Fatalf("%s gives %q, %v", path.Name, got.Name, err)
		}
		if !path.Here && (err == nil || !strings.Contains(err.Error(), path.Needs) ||
			!strings.Contains(err.Error(), strings.Join(Here(), ", "))) {
			t.Fatalf("%s, which is not here: %v", path.Name, err)
		}
	}
	if _, err := Choose("mmx"); err == nil || !strings.Contains(err.Error(), "auto, scalar, avx2, ifma, neon") {
		t.Fatalf("an unknown path: %v", err)
	}
}

// Every kernel on every path of this machine, MNIST-sized. Compare the paths of one run by the shortest call, which
// what else runs on the machine disturbs least.
func BenchmarkKernels(b *testing.B) {
	const logN, n, blocks = 13, 1 << 13, 48
	for _, path := range Paths {
		if !path.Here {
			continue
		}
		m := path.New(subRing(b, logN, primes[0]))
		values := inputs(n, primes[0])
		x, y := values["random"], values["random again"]
		factor := slices.Clone(y)
		m.Factor(factor)
		packed := make([]byte, PackedSize(n))
		m.Pack(packed, x)
		var sums Sums
		many := make([]uint64, blocks*Tile)
		for name, run := range map[string]func(){
			"ntt":          func() { m.Forward(x) },
			"intt":         func() { m.Backward(x) },
			"multiply-add": func() { m.MultiplyAdd(x, y, factor) },
			"pack":         func() { m.Pack(packed, y) },
			"unpack":       func() { m.Unpack(y, packed) },
			"unpack-add":   func() { m.UnpackAdd(y, packed) },
			"accumulate":   func() { sums = Sums{}; m.Accumulate(&sums, many, many, many, blocks, Tile, Tile) },
			"reduce":       func() { m.Reduce(x[:Tile], x[Tile:2*Tile], &sums) },
			"right block":  func() { m.ForwardOperand(many[:n], 272); clear(many[:272]) },
		} {
			b.Run(fmt.Sprint(name, "/", path.Name), func(b *testing.B) {
				least := time.Hour
				for b.Loop() {
					started := time.Now()
					run()
					least = min(least, time.Since(started))
				}
				b.ReportMetric(float64(least.Nanoseconds()), "least-ns")
			})
		}
	}
}
