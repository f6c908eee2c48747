package sample

import (
	"bytes"
	"testing"
)

// Whatever lengths it is asked for, every processor draws the same bytes.
func TestKeyStreamsAreThoseOfTheLibrary(t *testing.T) {
	for seed := range 4 {
		var key [32]byte
		for i := range key {
			key[i] = byte(seed * (37*i + 11))
		}
		here, known := newKeyStream(key), newPortable(key)
		for _, size := range []int{0, 1, 15, 16, 17, 8, 24, 255, 256, 257, 4096, 5, 3, 4104, 1 << 16, 7, 272, 1 << 20} {
			found, expected := make([]byte, size), make([]byte, size)
			here.next(found)
			known.next(expected)
			if !bytes.Equal(found, expected) {
				t.Fatalf("key %d: other bytes of %d", seed, size)
			}
		}
	}
}

func TestWordsAreTheSameOneByOneAndManyAtATime(t *testing.T) {
	seed := make([]byte, 32)
	one, many := NewStream("test", seed, "words", nil, 3), NewStream("test", seed, "words", nil, 3)
	for _, count := range []int{1, 2, 511, 512, 513, 3, 8192} {
		words := make([]uint64, count)
		many.Fill(words)
		for i, word := range words {
			if word != one.Word() {
				t.Fatalf("word %d of %d", i, count)
			}
		}
	}
}

func BenchmarkFill(b *testing.B) {
	s, words := NewStream("test", make([]byte, 32), "words", nil, 0), make([]uint64, 8192)
	b.SetBytes(8 * 8192)
	for b.Loop() {
		s.Fill(words)
	}
}
