package product

import "testing"

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
