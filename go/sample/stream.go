package sample

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Stream is AES-256 in counter mode under a key used for nothing else.
type Stream struct {
	keys  keyStream
	chunk [4096]byte
	next  int
}

// NewStream expands a seed: a library, a purpose, the caller's domain and an index make every stream of it different.
func NewStream(library string, seed []byte, purpose string, domain []byte, index int) *Stream {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(library), seed, []byte(purpose), domain} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write(part)
	}
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(index))
	hash.Write(number[:])
	key := hash.Sum(nil)
	s := &Stream{keys: newKeyStream([32]byte(key))}
	s.next = len(s.chunk)
	return s
}

// keyStream is AES-256 in counter mode from zero on.
type keyStream interface {
	// next writes the bytes that follow those of the call before.
	next(out []byte)
}

// portable is the key stream of Go's own library.
type portable struct{ mode cipher.Stream }

func newPortable(key [32]byte) keyStream {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	var start [aes.BlockSize]byte
	return portable{cipher.NewCTR(block, start[:])}
}

// zeros is what the key stream is added to: read in the fastest cache, it costs less than clearing what is filled.
var zeros [4096]byte

func (p portable) next(out []byte) {
	for len(out) > 0 {
		part := out[:min(len(out), len(zeros))]
		p.mode.XORKeyStream(part, zeros[:len(part)])
		out = out[len(part):]
	}
}

func (s *Stream) refill() {
	s.keys.next(s.chunk[:])
	s.next = 0
}

// Word is the next word of the stream.
func (s *Stream) Word() uint64 {
	if s.next == len(s.chunk) {
		s.refill()
	}
	value := binary.LittleEndian.Uint64(s.chunk[s.next:])
	s.next += 8
	return value
}

// Fill writes the next words of the stream, as Word does, many at a time.
func (s *Stream) Fill(words []uint64) {
	for ; s.next < len(s.chunk) && len(words) > 0; words = words[1:] {
		words[0] = s.Word()
	}
	if len(words) == 0 {
		return
	}
	s.keys.next(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words)))
	if bigEndian {
		for i, word := range words {
			words[i] = bits.ReverseBytes64(word)
		}
	}
}

var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1
