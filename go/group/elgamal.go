package group

import (
	"bytes"

	"filippo.io/edwards25519"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// Sizes of what travels: a ciphertext is the pair (d G, m + d Y).
const (
	CipherSize = 2 * ElementSize
	SecretSize = ElementSize
	// PublicSize is a key and its proof of possession (R, z).
	PublicSize = 3 * ElementSize
)

// Keygen makes a key r, and Y = r G with a proof (Schnorr's) that its maker knows
// r, bound to context: a key that was chosen to cancel others' has none.
func Keygen(seed, context, secret, public []byte) error {
	if len(secret) != SecretSize || len(public) != PublicSize {
		return fault.New(fault.Argument, "a key has %d secret and %d public bytes", SecretSize, PublicSize)
	}
	drawn, err := drawScalars(seed, "key", 2)
	if err != nil {
		return err
	}
	key, nonce := drawn[0], drawn[1]
	copy(secret, key.Bytes())
	encode(public[:32], new(edwards25519.Point).ScalarBaseMult(key))
	encode(public[32:64], new(edwards25519.Point).ScalarBaseMult(nonce))
	challenge, err := hashToScalar(public[:64], context)
	if err != nil {
		return err
	}
	copy(public[64:], new(edwards25519.Scalar).MultiplyAdd(challenge, key, nonce).Bytes())
	return nil
}

// CheckKey verifies a public key and its proof: z G = R + c Y.
func CheckKey(public, context []byte) error {
	if len(public) != PublicSize {
		return fault.New(fault.Message, "a public key of %d bytes is not one of %d", len(public), PublicSize)
	}
	key, err := decodeKey(public[:32])
	if err != nil {
		return err
	}
	commitment, err := decode(public[32:64])
	if err != nil {
		return err
	}
	answer, err := new(edwards25519.Scalar).SetCanonicalBytes(public[64:])
	if err != nil {
		return fault.New(fault.Message, "a proof of possession is malformed")
	}
	challenge, err := hashToScalar(public[:64], context)
	if err != nil {
		return err
	}
	left := new(edwards25519.Point).ScalarBaseMult(answer)
	right := new(edwards25519.Point).ScalarMult(challenge, key)
	right.Add(right, commitment)
	if !same(left, right) {
		return fault.New(fault.Key, "a proof of possession does not fit its key")
	}
	return nil
}

func same(a, b *edwards25519.Point) bool {
	var x, y [ElementSize]byte
	encode(x[:], a)
	encode(y[:], b)
	return bytes.Equal(x[:], y[:])
}

// joint is the product of keys (their sum, as the group is written additively).
func joint(keys [][]byte) (*edwards25519.Point, error) {
	total := edwards25519.NewIdentityPoint()
	for _, public := range keys {
		if len(public) != PublicSize {
			return nil, fault.New(fault.Argument, "a public key has %d bytes", PublicSize)
		}
		key, err := decodeKey(public[:32])
		if err != nil {
			return nil, err
		}
		total.Add(total, key)
	}
	if same(total, edwards25519.NewIdentityPoint()) {
		return nil, fault.New(fault.Message, "the keys of the layers cancel each other")
	}
	return total, nil
}

// Wrap encrypts pieces of PieceSize bytes under the product of keys.
func Wrap(keys [][]byte, pieces, seed, out []byte) error {
	count := len(pieces) / PieceSize
	if len(pieces)%PieceSize != 0 || len(out) != count*CipherSize {
		return fault.New(fault.Argument, "pieces and ciphertexts do not fit each other")
	}
	key, err := joint(keys)
	if err != nil {
		return err
	}
	drawn, err := drawScalars(seed, "wrap", count)
	if err != nil {
		return err
	}
	return parallel.Run(count, func(_, i int) error {
		message, err := embed(pieces[i*PieceSize : (i+1)*PieceSize])
		if err != nil {
			return err
		}
		message.Add(message, new(edwards25519.Point).ScalarMult(drawn[i], key))
		at := out[i*CipherSize : (i+1)*CipherSize]
		encode(at[:ElementSize], new(edwards25519.Point).ScalarBaseMult(drawn[i]))
		encode(at[ElementSize:], message)
		return nil
	})
}

// Strip takes one key's layer off every ciphertext, re-randomises what is left
// under the keys below, and permutes: batch and out hold `items` rows of equal
// length, and each column of ciphertexts gets a permutation of its own.
//
// (A, B) becomes (A + d G, B - r A + d Y) with a fresh d.
func Strip(secret []byte, below [][]byte, items int, batch, seed, out []byte) error {
	columns, err := columnsOf(items, batch, out)
	if err != nil {
		return err
	}
	key, err := new(edwards25519.Scalar).SetCanonicalBytes(secret)
	if err != nil {
		return fault.New(fault.Argument, "a secret key is malformed")
	}
	minus := new(edwards25519.Scalar).Negate(key)
	rest, err := joint(below)
	if err != nil {
		return err
	}
	drawn, err := drawScalars(seed, "strip", items*columns)
	if err != nil {
		return err
	}
	places, err := permutations(seed, items, columns)
	if err != nil {
		return err
	}
	return parallel.Run(items*columns, func(_, i int) error {
		from := batch[i*CipherSize : (i+1)*CipherSize]
		first, second, err := pair(from)
		if err != nil {
			return err
		}
		row, column := i/columns, i%columns
		moved := edwards25519.NewIdentityPoint().MultiScalarMult(
			[]*edwards25519.Scalar{minus, drawn[i]}, []*edwards25519.Point{first, rest})
		to := places[column*items+row]*columns + column
		at := out[to*CipherSize : (to+1)*CipherSize]
		encode(at[:ElementSize], first.Add(first, new(edwards25519.Point).ScalarBaseMult(drawn[i])))
		encode(at[ElementSize:], second.Add(second, moved))
		return nil
	})
}

// permutations gives, column by column, where each row goes.
func permutations(seed []byte, items, columns int) ([]int, error) {
	source, err := stream(seed, "shuffle")
	if err != nil {
		return nil, err
	}
	places := make([]int, items*columns)
	for column := range columns {
		shuffle(source, places[column*items:(column+1)*items])
	}
	return places, nil
}

func columnsOf(items int, batch, out []byte) (int, error) {
	if items < 1 || len(batch)%(items*CipherSize) != 0 || len(out) != len(batch) {
		return 0, fault.New(fault.Argument, "a batch of %d bytes does not hold %d items", len(batch), items)
	}
	return len(batch) / (items * CipherSize), nil
}

// pair reads a ciphertext; its first half is never the identity.
func pair(ciphertext []byte) (first, second *edwards25519.Point, err error) {
	if first, err = decodeKey(ciphertext[:ElementSize]); err != nil {
		return nil, nil, err
	}
	second, err = decode(ciphertext[ElementSize:])
	return first, second, err
}

// Read decrypts ciphertexts under the last key and gives their pieces.
func Read(secret, batch, pieces []byte) error {
	count := len(batch) / CipherSize
	if len(batch)%CipherSize != 0 || len(pieces) != count*PieceSize {
		return fault.New(fault.Argument, "pieces and ciphertexts do not fit each other")
	}
	key, err := new(edwards25519.Scalar).SetCanonicalBytes(secret)
	if err != nil {
		return fault.New(fault.Argument, "a secret key is malformed")
	}
	minus := new(edwards25519.Scalar).Negate(key)
	return parallel.Run(count, func(_, i int) error {
		first, second, err := pair(batch[i*CipherSize : (i+1)*CipherSize])
		if err != nil {
			return err
		}
		message := new(edwards25519.Point).ScalarMult(minus, first)
		return extract(pieces[i*PieceSize:(i+1)*PieceSize], message.Add(message, second))
	})
}
