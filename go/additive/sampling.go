package additive

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"atoll/core/fault"
	"atoll/core/sample"
)

// Domains: what a key derived from a seed is for. One derived key expands one
// stream, so the counter may start at zero.
const (
	domainReference = "atoll/lattice/reference/1"
	domainCommon    = "atoll/lattice/common/1"
	domainSecret    = "atoll/lattice/secret/1"
	domainKeyError  = "atoll/lattice/key-error/1"
	domainEncrypt   = "atoll/lattice/encrypt/1"
	domainMask      = "atoll/lattice/mask/1"
	domainError     = "atoll/lattice/error/1"
	domainBlur      = "atoll/lattice/blur/1"
	domainSmudge    = "atoll/lattice/smudge/1"
)

type seed [SeedBytes]byte

func seedFrom(data []byte) (s seed, err error) {
	if len(data) != SeedBytes {
		return s, fault.New(fault.Argument, "a seed has %d bytes, not %d", SeedBytes, len(data))
	}
	copy(s[:], data)
	return s, nil
}

// derive is HMAC-SHA256 of length-prefixed parts, so no two domains collide.
func derive(from seed, domain string, parts ...[]byte) (key seed) {
	mac := hmac.New(sha256.New, from[:])
	add := func(part []byte) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write(part)
	}
	add([]byte(domain))
	for _, part := range parts {
		add(part)
	}
	mac.Sum(key[:0])
	return key
}

func number(value int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(value))
}

// expand fills room with the AES-256-CTR keystream of key.
func expand(key seed, room []byte) {
	stream(key)(room)
}

// stream returns a function that writes the next bytes of key's keystream.
func stream(key seed) func(room []byte) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key's length is a constant
	}
	counter := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	return func(room []byte) {
		clear(room)
		counter.XORKeyStream(room, room)
	}
}

// ternary draws coefficients uniform on {-1, 0, 1}.
func ternary(key seed, s *scratch) {
	room := s.stream[:8*len(s.small)]
	expand(key, room)
	for i := range s.small {
		s.small[i] = int8(sample.Ternary(binary.LittleEndian.Uint64(room[8*i:])))
	}
}

// binomial draws centred binomial coefficients of 21 coin pairs.
func binomial(key seed, s *scratch) {
	room := s.stream[:8*len(s.small)]
	expand(key, room)
	for i := range s.small {
		s.small[i] = int8(sample.Binomial(binary.LittleEndian.Uint64(room[8*i:])))
	}
}

// residues writes small coefficients as residues modulo every prime.
func (ctx *context) residues(small []int8, out poly) {
	for i, r := range ctx.rings {
		row := ctx.row(out, i)
		for j, value := range small {
			wide := int64(value)
			row[j] = uint64(wide) + uint64(wide>>63)&r.Modulus
		}
	}
}

// addSmall adds small coefficients to p in place.
func (ctx *context) addSmall(small []int8, p poly) {
	for i, r := range ctx.rings {
		row, q := ctx.row(p, i), r.Modulus
		for j, value := range small {
			wide := int64(value)
			sum := row[j] + uint64(wide) + uint64(wide>>63)&q
			if sum >= q {
				sum -= q
			}
			row[j] = sum
		}
	}
}

// uniform draws residues below every prime by rejection from masked words.
func (ctx *context) uniform(key seed, s *scratch, out poly) {
	next := stream(key)
	for i, r := range ctx.rings {
		row := ctx.row(out, i)
		for filled := 0; filled < len(row); {
			next(s.stream)
			for at := 0; at < len(s.stream) && filled < len(row); at += 8 {
				word := binary.LittleEndian.Uint64(s.stream[at:]) & r.Mask
				if word < r.Modulus {
					row[filled] = word
					filled++
				}
			}
		}
	}
}

// transform takes small coefficients to the NTT domain, in Montgomery form.
func (ctx *context) transform(small []int8, out poly) {
	ctx.residues(small, out)
	for i, r := range ctx.rings {
		row := ctx.row(out, i)
		r.NTT(row, row)
		r.MForm(row, row)
	}
}
