package product

import (
	"sync"
	"testing"
)

func TestLargeBlocksAreUsedAgain(t *testing.T) {
	n := largeBlock/8 + 5
	first := takeWords(n)
	first[0], first[n-1] = 1, 2
	place := &first[0]
	giveWords(first)
	second := takeWords(n - 3) // rounds to the same capacity
	if &second[0] != place || len(second) != n-3 {
		t.Fatal("a block of the same size was not used again")
	}
	giveWords(second)
	small := takeWords(8)
	giveWords(small) // nothing to give back
	many := [][]uint64{}
	for range maxIdle/largeBlock + 3 {
		many = append(many, takeWords(n))
	}
	for _, block := range many {
		giveWords(block)
	}
	if idle.bytes > maxIdle {
		t.Fatalf("%d bytes lie idle", idle.bytes)
	}
}

func TestADirtyBlockGivesTheSameEncoding(t *testing.T) {
	r, err := Get("wide4")
	if err != nil {
		t.Fatal(err)
	}
	y := Layout{Rows: 4, Inner: 40, Cols: 512, BlockRows: 4, BlockInner: 32, BlockCols: 16}
	x := NewMatrix(40, 512, 1)
	for i := range x.Data {
		x.Data[i] = uint64(i % 1000)
	}
	first, err := EncodeRight(r, x, 12, y)
	if err != nil {
		t.Fatal(err)
	}
	kept := append([]uint64(nil), first.polys...)
	for i := range first.polys {
		first.polys[i] = 7
	}
	first.Free()
	second, err := EncodeRight(r, x, 12, y)
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept {
		if kept[i] != second.polys[i] {
			t.Fatal("what lay in the block before shows")
		}
	}
	second.Free()
}

// watchedRing has a pool that remembers everything it lent.
func watchedRing(t *testing.T, name string) (*Ring, *[]*[]uint64) {
	t.Helper()
	known, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRing(known.Parameters, known.path)
	if err != nil {
		t.Fatal(err)
	}
	lent := &[]*[]uint64{}
	var lock sync.Mutex
	r.buffer.New = func() any {
		poly := make([]uint64, r.Limbs*r.N)
		lock.Lock()
		*lent = append(*lent, &poly)
		lock.Unlock()
		return &poly
	}
	return r, lent
}

func notZero(lent []*[]uint64) int {
	count := 0
	for _, poly := range lent {
		for _, word := range *poly {
			if word != 0 {
				count++
				break
			}
		}
	}
	return count
}

func TestPolynomialsThatHeldSecretsAreWiped(t *testing.T) {
	r, lent := watchedRing(t, "wide4")
	y := Layout{Rows: 2, Inner: 2, Cols: 2, BlockRows: 2, BlockInner: 2, BlockCols: 2}
	seed := make([]byte, SeedBytes)
	secret, err := NewSecret(r, seed)
	if err != nil {
		t.Fatal(err)
	}
	x := NewMatrix(2, 2, 1)
	x.Data[0] = 12345
	out := make([]byte, r.PolySize())
	if err := secret.Encrypt(out, x, 20, 1, y, seed, seed); err != nil {
		t.Fatal(err)
	}
	// The common polynomial is public, and may stay; the message and its error may not.
	if found := notZero(*lent); len(*lent) != 2 || found != 1 {
		t.Fatalf("%d of %d polynomials were left after an encryption", found, len(*lent))
	}
	r, lent = watchedRing(t, "wide4")
	secret.ring = r
	c := Clearing{Parties: 2, ValueBits: 80, RightBits: 4, Truncate: 80, MaskBits: 144}
	share := NewMatrix(2, 2, c.ShareWords())
	message := make([]byte, MaskedSize(r, y))
	if err := secret.Refresh(message, share, out, y, c, seed, nil); err != nil {
		t.Fatal(err)
	}
	if found := notZero(*lent); len(*lent) == 0 || found != 0 {
		t.Fatalf("%d of %d polynomials were left after a refresh", found, len(*lent))
	}
	key := &PublicKey{ring: r, b: make([]uint64, r.Limbs*r.N), a: make([]uint64, r.Limbs*r.N)}
	key.addZero(make([]uint64, r.Limbs*r.N), make([]uint64, r.Limbs*r.N), newStream(seed, forZero, nil, 0))
	if found := notZero(*lent); found != 0 {
		t.Fatalf("%d polynomials were left after an encryption of zero", found)
	}
	secret.Free()
	if notZero([]*[]uint64{&secret.s}) != 0 {
		t.Fatal("a freed key is still there")
	}
}

func TestBlocksThatHeldSecretsAreWiped(t *testing.T) {
	block := takeWords(largeBlock / 8)
	for i := range block {
		block[i] = 7
	}
	wipeWords(block)
	again := takeWords(largeBlock / 8)
	if &again[0] != &block[0] || notZero([]*[]uint64{&again}) != 0 {
		t.Fatal("a block came back as it was, or not at all")
	}
	giveWords(again)
}

func TestStagesAreGivenBackEmpty(t *testing.T) {
	s := borrowStage(8, 2)
	for i := range s.rights {
		s.rights[i] = uint64(i) + 1
	}
	rights := s.rights
	s.giveBack()
	for _, word := range rights {
		if word != 0 {
			t.Fatal("a stage keeps the matrix that it held")
		}
	}
}
