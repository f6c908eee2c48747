package fingerprint

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"atoll/core/fault"
)

// plain is the definition, in big integers.
func plain(data []byte, size int, point Point) uint64 {
	prime, z := new(big.Int).SetUint64(point.Modulus), new(big.Int).SetUint64(point.Z)
	power, total := big.NewInt(1), big.NewInt(0)
	for at := 0; at < len(data); at += size {
		reversed := make([]byte, size)
		for i := range reversed {
			reversed[size-1-i] = data[at+i]
		}
		x := new(big.Int).SetBytes(reversed)
		total.Add(total, x.Mul(x, power)).Mod(total, prime)
		power.Mul(power, z).Mod(power, prime)
	}
	return total.Uint64()
}

func TestAFingerprintIsThePolynomialAtThePoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	moduli := []uint64{3, 65537, 1<<61 - 1, 0xfffffffff78001}
	for i, p := range moduli {
		for _, size := range []int{1, 7, 8, 12, 20, 26, 35, 64} {
			for _, count := range []int{0, 1, 5, chunk - 1, chunk, 2*chunk + 3} {
				data := make([]byte, size*count)
				for i := range data {
					data[i] = byte(rng.Uint32())
					if count == 5 {
						data[i] = 255 // the largest integers
					}
				}
				other := moduli[(i+1)%len(moduli)]
				points := Pair[Point]{{p, rng.Uint64N(p)}, {other, rng.Uint64N(other)}}
				got, err := Evaluate(data, size, count, []Pair[Point]{points})
				if err != nil || got[0][0] != plain(data, size, points[0]) || got[0][1] != plain(data, size, points[1]) {
					t.Fatalf("%v, size %d, count %d: %d, %v", points, size, count, got, err)
				}
			}
		}
	}
}

func TestVectorsThatTakeTurnsHaveTheFingerprintsOfEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const size, rows, runs = 7, 3, 4
	for _, length := range []int{1, 5, chunk, 2*chunk + 3} {
		data := make([]byte, size*length*rows*runs)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		var apart [rows][]byte
		for run := range rows * runs {
			apart[run%rows] = append(apart[run%rows], data[run*length*size:(run+1)*length*size]...)
		}
		var points []Pair[Point]
		for range rows {
			points = append(points, Pair[Point]{{1<<61 - 1, rng.Uint64N(1 << 60)}, {0xfffffffff78001, rng.Uint64N(1 << 55)}})
		}
		got, err := Evaluate(data, size, length, points)
		if err != nil || len(got) != rows {
			t.Fatal(got, err)
		}
		for row, pair := range points {
			if got[row][0] != plain(apart[row], size, pair[0]) || got[row][1] != plain(apart[row], size, pair[1]) {
				t.Fatalf("length %d, row %d: %d", length, row, got)
			}
		}
	}
}

func TestPseudoprimesAreNoPrimes(t *testing.T) {
	pseudo := []uint64{0, 1, 341, 3215031751, 3825123056546413051, 1<<61 + 1, 41 * 43}
	for _, prime := range []uint64{1<<61 - 1, 2305843009213693921, 1000003} {
		if found, err := FirstPrime(append(append([]uint64{}, pseudo...), prime, 7)); found != prime || err != nil {
			t.Fatal(found, err)
		}
	}
	for n := range uint64(10_000) {
		if isPrime(n) != new(big.Int).SetUint64(n).ProbablyPrime(0) {
			t.Fatal(n)
		}
	}
	if found, err := FirstPrime(pseudo); err == nil {
		t.Fatal(found, "is no prime")
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	sound := Point{7, 1}
	for _, c := range []struct {
		bytes, size, length int
		point               Point
	}{
		{10, 3, 3, sound}, {10, 0, 1, sound}, {130, 65, 2, sound}, {10, 5, 0, sound}, {10, 5, -2, sound}, {10, 5, 3, sound},
		{10, 5, 1 << 62, sound}, {10, 5, 2, Point{1, 0}}, {10, 5, 2, Point{7, 7}}, {10, 5, 2, Point{1<<61 + 1, 1}},
	} {
		for _, points := range []Pair[Point]{{c.point, sound}, {sound, c.point}} {
			if _, err := Evaluate(make([]byte, c.bytes), c.size, c.length, []Pair[Point]{points}); fault.KindOf(err) != fault.Argument {
				t.Fatalf("%v gave %v", c, err)
			}
		}
	}
	for _, rows := range []int{0, 3, MaxRows + 1} {
		points := make([]Pair[Point], rows)
		for i := range points {
			points[i] = Pair[Point]{sound, sound}
		}
		if _, err := Evaluate(make([]byte, 10), 5, 1, points); fault.KindOf(err) != fault.Argument {
			t.Fatalf("%d rows gave %v", rows, err)
		}
	}
}

func BenchmarkAMillionCoefficients(b *testing.B) {
	data := make([]byte, 35<<20)
	for b.Loop() {
		_, _ = Evaluate(data, 35, 1<<20, []Pair[Point]{{{1<<61 - 1, 12345}, {1<<61 - 1, 54321}}})
	}
}

func BenchmarkAKey(b *testing.B) {
	const prime = 0xfffffffff78001
	data, points := make([]byte, 7*5<<14), make([]Pair[Point], 5)
	for i := range points {
		points[i] = Pair[Point]{{prime, 12345}, {prime, 54321}}
	}
	for b.Loop() {
		_, _ = Evaluate(data, 7, 1<<14, points)
	}
}
