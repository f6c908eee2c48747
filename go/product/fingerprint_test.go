package product

import (
	"bytes"
	"slices"
	"testing"

	"atoll/core/vector"
)

func fingerprintOf(t *testing.T, f *Fingerprint, r *Ring, data []byte, count int) []uint64 {
	t.Helper()
	out := make([]uint64, Points*r.Limbs)
	if err := f.Of(out, r, data, count); err != nil {
		t.Fatal(err)
	}
	return out
}

// messageOf packs residues that follow from a seed.
func messageOf(r *Ring, seed byte, blocks, count int) ([]byte, []uint64) {
	data := make([]byte, blocks*r.residuesSize(count))
	values := make([]uint64, blocks*r.Limbs*count)
	s := newStream(make([]byte, SeedBytes), "test", []byte{seed}, 0)
	for b := range blocks {
		part := values[b*r.Limbs*count : (b+1)*r.Limbs*count]
		for i := range part {
			part[i] = s.Word() % r.Moduli[i/count]
		}
		r.packResidues(data[b*r.residuesSize(count):], part, count)
	}
	return data, values
}

func TestFingerprintsOfASumAreTheSumOfFingerprints(t *testing.T) {
	for _, name := range []string{"wide4", "deep7"} {
		r, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := NewFingerprint(make([]byte, SeedBytes))
		if err != nil {
			t.Fatal(err)
		}
		for _, shape := range [][2]int{{1, 1}, {1, 7}, {3, 5001}, {2, r.N}} {
			blocks, count := shape[0], shape[1]
			x, left := messageOf(r, 1, blocks, count)
			y, right := messageOf(r, 2, blocks, count)
			for b := range blocks {
				part := r.Limbs * count
				r.addInto(left[b*part:(b+1)*part], right[b*part:(b+1)*part], count)
			}
			sum := make([]byte, len(x))
			for b := range blocks {
				r.packResidues(sum[b*r.residuesSize(count):], left[b*r.Limbs*count:(b+1)*r.Limbs*count], count)
			}
			fx, fy, fs := fingerprintOf(t, f, r, x, count), fingerprintOf(t, f, r, y, count), fingerprintOf(t, f, r, sum, count)
			for i := range fs {
				if fs[i] != addMod(fx[i], fy[i], r.Moduli[i/Points]) {
					t.Fatalf("%s %v: fingerprint %d of a sum is not the sum", name, shape, i)
				}
			}
		}
	}
}

func TestEveryResidueEntersItsLimbsFingerprints(t *testing.T) {
	r, err := Get("deep5")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFingerprint(make([]byte, SeedBytes))
	if err != nil {
		t.Fatal(err)
	}
	const blocks, count = 2, 2*chunk + 3
	data, values := messageOf(r, 3, blocks, count)
	before := fingerprintOf(t, f, r, data, count)
	for _, place := range []int{0, 1, chunk - 1, chunk, count - 1} {
		for limb := range r.Limbs {
			part := append([]uint64(nil), values[r.Limbs*count:]...)
			part[limb*count+place] = (part[limb*count+place] + 1) % r.Moduli[limb]
			changed := append([]byte(nil), data...)
			r.packResidues(changed[r.residuesSize(count):], part, count)
			after := fingerprintOf(t, f, r, changed, count)
			for i := range after {
				if (after[i] != before[i]) != (i/Points == limb) {
					t.Fatalf("residue %d of limb %d and fingerprint %d", place, limb, i)
				}
			}
		}
	}
	// Blocks have weights of their own: two of them exchanged are another message.
	half := len(data) / 2
	turned := append(append([]byte(nil), data[half:]...), data[:half]...)
	if after := fingerprintOf(t, f, r, turned, count); after[0] == before[0] || after[1] == before[1] {
		t.Fatal("exchanged blocks have the same fingerprint")
	}
	if before[0] == before[1] {
		t.Fatal("the points are not independent")
	}
}

func TestChunksOfOneBlockHaveWeightsOfTheirOwn(t *testing.T) {
	r, err := Get("deep5")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFingerprint(make([]byte, SeedBytes))
	if err != nil {
		t.Fatal(err)
	}
	const count = 2 * chunk
	data, values := messageOf(r, 4, 1, count)
	before := fingerprintOf(t, f, r, data, count)
	turned := append([]uint64(nil), values...)
	copy(turned[:chunk], values[chunk:count])
	copy(turned[chunk:count], values[:chunk])
	r.packResidues(data, turned, count)
	if after := fingerprintOf(t, f, r, data, count); after[0] == before[0] || after[1] == before[1] {
		t.Fatal("exchanged chunks have the same fingerprint")
	}
}

func TestTheTwoPointsHaveNoCoefficientInCommon(t *testing.T) {
	f, err := NewFingerprint(make([]byte, SeedBytes))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{f.power[0]: true, f.power[1]: true}
	var width uint64
	for i := range chunk {
		for p := range Points {
			// Of 8192 numbers of 52 bits two are equal once in 2^27 seeds.
			seen[f.coefficients[p][i]] = true
			width |= f.coefficients[p][i]
		}
	}
	if len(seen) != Points*(chunk+1) {
		t.Fatalf("%d of %d coefficients are different", len(seen), Points*(chunk+1))
	}
	if width != 1<<52-1 {
		t.Fatalf("coefficients fill %b", width)
	}
}

func TestFingerprintsRefuseMessagesOfTheWrongSize(t *testing.T) {
	r, _ := Get("wide4")
	f, _ := NewFingerprint(make([]byte, SeedBytes))
	out := make([]uint64, Points*r.Limbs)
	data, _ := messageOf(r, 1, 1, 5)
	for _, bad := range [][]byte{nil, data[1:]} {
		if f.Of(out, r, bad, 5) == nil {
			t.Fatal("a message of the wrong size was taken")
		}
	}
}

// A sum whose differences cancel out between two places is no sum.
func TestFingerprintsTellPlacesApart(t *testing.T) {
	r, err := Get("deep7")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFingerprint(make([]byte, SeedBytes))
	if err != nil {
		t.Fatal(err)
	}
	swapped := func(data []byte, first, second, size int) []byte {
		out := bytes.Clone(data)
		copy(out[first:first+size], data[second:second+size])
		copy(out[second:second+size], data[first:first+size])
		return out
	}
	blocks, _ := messageOf(r, 1, 3, 10)
	size := r.residuesSize(10)
	chunks, _ := messageOf(r, 1, 1, 2*chunk)
	for name, pair := range map[string]struct {
		data, other []byte
		count       int
	}{
		"blocks": {blocks, swapped(blocks, 0, size, size), 10},
		"chunks": {chunks, swapped(chunks, 0, vector.PackedSize(chunk), vector.PackedSize(chunk)), 2 * chunk},
	} {
		if slices.Equal(fingerprintOf(t, f, r, pair.data, pair.count), fingerprintOf(t, f, r, pair.other, pair.count)) {
			t.Errorf("%s can change places", name)
		}
	}
}

// Fingerprints are compared between machines: every path must take the same ones, at the edges of the range too.
func TestEveryPathTakesTheSameFingerprints(t *testing.T) {
	known, err := Get("deep5")
	if err != nil {
		t.Fatal(err)
	}
	f, _ := NewFingerprint(make([]byte, SeedBytes))
	most := &Fingerprint{}
	for p := range Points {
		for i := range chunk {
			most.coefficients[p][i] = 1<<modulusBits - 1
		}
		most.power[p] = 1<<modulusBits - 1
	}
	for _, count := range []int{1, 2, 3, 7, 8, 9, 15, 16, chunk - 1, chunk, chunk + 5, 2 * chunk} {
		drawn, values := messageOf(known, 7, 2, count)
		for i := range values {
			values[i] = known.Moduli[i/count%known.Limbs] - 1
		}
		largest := make([]byte, len(drawn))
		half := known.residuesSize(count)
		known.packResidues(largest[:half], values, count)
		copy(largest[half:], largest[:half])
		for _, path := range vector.Paths {
			if !path.Here {
				continue
			}
			r, err := newRing(known.Parameters, path)
			if err != nil {
				t.Fatal(err)
			}
			scalar, err := newRing(known.Parameters, vector.Paths[len(vector.Paths)-1])
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range [][]byte{drawn, largest} {
				for _, g := range []*Fingerprint{f, most} {
					if !slices.Equal(fingerprintOf(t, g, r, data, count), fingerprintOf(t, g, scalar, data, count)) {
						t.Fatalf("%s: other fingerprints of %d residues", path.Name, count)
					}
				}
			}
			for _, place := range []int{0, count / 2, count - 1} {
				wrong := append([]uint64(nil), values...)
				wrong[count+place]++ // the modulus itself
				data := make([]byte, len(largest))
				known.packResidues(data[:half], wrong, count)
				copy(data[half:], largest[half:])
				if f.Of(make([]uint64, Points*r.Limbs), r, data, count) == nil {
					t.Fatalf("%s: a residue that is none was taken, place %d of %d", path.Name, place, count)
				}
			}
		}
	}
}
