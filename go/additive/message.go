package additive

import (
	"encoding/binary"
	"hash/crc32"

	"atoll/core/fault"
)

// A message is a header and a body. The header:
//
//	 0  version     1 byte
//	 1  kind        1
//	 2  set         1   row of the parameter table
//	 3  width       1   polynomials per c1
//	 4  count       4   summands of a ciphertext, member of a share, members of a public key
//	 8  values      8   values in the vector
//	16  key        16   id of the key it was made under or is
//	32  checksum    4   CRC-32C of all other bytes: it catches accidents, not forgery
const (
	version    = 1
	headerSize = 36
	keyIDSize  = 16
)

type kind uint8

const (
	kindSecretKey kind = iota + 1
	kindPublicKey
	kindCiphertext
	kindSecretShare
	kindKeyShare
	kindDecryptionShare
)

var kindNames = map[kind]string{
	kindSecretKey: "secret key", kindPublicKey: "public key", kindCiphertext: "ciphertext",
	kindSecretShare: "secret share", kindKeyShare: "key share", kindDecryptionShare: "decryption share",
}

func (k kind) String() string {
	if name, found := kindNames[k]; found {
		return name
	}
	return "message of unknown kind"
}

type keyID [keyIDSize]byte

type header struct {
	kind   kind
	set    uint8
	width  int
	count  int
	values int
	key    keyID
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// write puts the header before a finished body.
func (h header) write(message []byte) {
	message[0], message[1], message[2], message[3] = version, byte(h.kind), h.set, byte(h.width)
	binary.LittleEndian.PutUint32(message[4:], uint32(h.count))
	binary.LittleEndian.PutUint64(message[8:], uint64(h.values))
	copy(message[16:32], h.key[:])
	binary.LittleEndian.PutUint32(message[32:], checksum(message))
}

func checksum(message []byte) uint32 {
	sum := crc32.Checksum(message[:headerSize-4], castagnoli)
	return crc32.Update(sum, castagnoli, message[headerSize:])
}

// read checks everything about a message that needs no key.
func read(message []byte, want kind, insecure bool) (h header, ctx *context, err error) {
	if h, ctx, err = peek(message, insecure); err != nil {
		return h, nil, err
	}
	if h.kind != want {
		return h, nil, fault.New(fault.Message, "a %v was expected, not a %v", want, h.kind)
	}
	if err = h.check(ctx); err != nil {
		return h, nil, err
	}
	if size := h.size(ctx); len(message) != size {
		return h, nil, fault.New(fault.Message, "a %v of these dimensions has %d bytes, not %d", want, size, len(message))
	}
	if checksum(message) != binary.LittleEndian.Uint32(message[32:]) {
		return h, nil, fault.New(fault.Message, "the %v is corrupted: its checksum is wrong", want)
	}
	return h, ctx, nil
}

// peek reads the header alone.
func peek(message []byte, insecure bool) (h header, ctx *context, err error) {
	if len(message) < headerSize {
		return h, nil, fault.New(fault.Message, "a message of %d bytes is too short for a header", len(message))
	}
	if message[0] != version {
		return h, nil, fault.New(fault.Message, "message version %d is unknown", message[0])
	}
	h = header{kind: kind(message[1]), set: message[2], width: int(message[3])}
	h.count = int(binary.LittleEndian.Uint32(message[4:]))
	values := binary.LittleEndian.Uint64(message[8:])
	if values > MaxValues {
		return h, nil, fault.New(fault.Message, "a message claims %d values", values)
	}
	h.values = int(values)
	copy(h.key[:], message[16:32])
	ctx, err = contextOf(h.set, insecure)
	return h, ctx, err
}

// check holds the dimensions against the parameter set.
func (h header) check(ctx *context) error {
	if h.width < 1 || h.width > MaxWidth {
		return fault.New(fault.Message, "a width of %d is not between 1 and %d", h.width, MaxWidth)
	}
	limit, needsValues := 0, false
	switch h.kind {
	case kindCiphertext:
		limit, needsValues = ctx.MaxSummands, true
	case kindDecryptionShare:
		limit, needsValues = ctx.MaxMembers, true
	case kindPublicKey:
		limit = ctx.MaxMembers
	}
	if h.count > 0 && limit == 0 {
		return fault.New(fault.Message, "a %v of parameter set %q counts nothing", h.kind, ctx.Name)
	}
	if h.count > limit {
		return fault.New(fault.Range, "a %v with a count of %d is beyond the limit of %d", h.kind, h.count, limit)
	}
	if needsValues != (h.values > 0) || h.kind == kindCiphertext && h.count == 0 {
		return fault.New(fault.Message, "a %v with %d values and a count of %d makes no sense", h.kind, h.values, h.count)
	}
	collective := h.kind == kindSecretShare || h.kind == kindKeyShare || h.kind == kindDecryptionShare
	single := h.kind == kindSecretKey || h.kind == kindPublicKey && h.count == 0
	if ctx.MaxMembers > 0 && single || ctx.MaxMembers == 0 && collective {
		return fault.New(fault.Message, "parameter set %q has no %v of this form", ctx.Name, h.kind)
	}
	return nil
}

// size is the length of the whole message.
func (h header) size(ctx *context) int {
	polynomials := h.width * len(ctx.rings) * ctx.n * residueBytes
	switch h.kind {
	case kindSecretKey, kindSecretShare:
		return headerSize + SeedBytes
	case kindKeyShare:
		return headerSize + SeedBytes + polynomials
	case kindPublicKey:
		return headerSize + SeedBytes + h.count*keyIDSize + polynomials
	case kindCiphertext:
		return headerSize + (h.groups(ctx)*ctx.n+h.slots(ctx))*ctx.CipherBytes
	case kindDecryptionShare:
		return headerSize + digestSize + h.slots(ctx)*ctx.ShareBytes
	}
	return headerSize
}

// slots is how many coefficients hold the values; with residues, slot k·values + v
// holds residue k of value v.
func (h header) slots(ctx *context) int { return h.values * ctx.Coefficients }

// polynomials is how many polynomials hold the slots.
func (h header) polynomials(ctx *context) int { return (h.slots(ctx) + ctx.n - 1) / ctx.n }

// groups is how many c1 there are.
func (h header) groups(ctx *context) int { return (h.polynomials(ctx) + h.width - 1) / h.width }

// span is the half-open range of slots that polynomial p holds.
func (h header) span(ctx *context, p int) (from, to int) {
	return p * ctx.n, min((p+1)*ctx.n, h.slots(ctx))
}

// belongs refuses a message made under another key.
func (h header) belongs(ctx *context, key keyID, width int) error {
	if h.key != key {
		return fault.New(fault.Key, "the %v was made under another key", h.kind)
	}
	if h.set != ctx.ID || h.width != width {
		return fault.New(fault.Message, "the %v does not have the dimensions of its key", h.kind)
	}
	return nil
}

// Facts are a message's public dimensions.
type Facts struct {
	Kind, Set, Width, Count, Values, Size uint64
}

// Inspect reads a header; the body is not looked at.
func Inspect(message []byte, insecure bool) (Facts, error) {
	h, ctx, err := peek(message, insecure)
	if err == nil {
		err = h.check(ctx)
	}
	if err != nil {
		return Facts{}, err
	}
	return Facts{uint64(h.kind), uint64(h.set), uint64(h.width), uint64(h.count), uint64(h.values), uint64(h.size(ctx))}, nil
}

// Size is the length of a message with these dimensions.
func Size(facts Facts, insecure bool) (int, error) {
	if facts.Set > 255 || facts.Width > MaxWidth || facts.Count > 1<<31 || facts.Values > MaxValues {
		return 0, fault.New(fault.Argument, "these dimensions are out of range")
	}
	ctx, err := contextOf(uint8(facts.Set), insecure)
	if err != nil {
		return 0, err
	}
	h := header{kind: kind(facts.Kind), set: uint8(facts.Set), width: int(facts.Width),
		count: int(facts.Count), values: int(facts.Values)}
	if err := h.check(ctx); err != nil {
		return 0, err
	}
	return h.size(ctx), nil
}

// room checks that out has the length that the header's message needs.
func (h header) room(ctx *context, out []byte) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	if size := h.size(ctx); len(out) != size {
		return fault.New(fault.Argument, "a %v needs a buffer of %d bytes, not %d", h.kind, size, len(out))
	}
	return nil
}
