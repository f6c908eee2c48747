package ckks

import (
	"encoding/binary"
	"math/bits"

	"atoll/core/fault"
	"atoll/core/parallel"
)

// A message is a header and residues, eight bytes each, polynomial after
// polynomial and modulus after modulus. The header:
//
//	0  version   1 byte
//	1  kind      1
//	2  set       1   row of the parameter table
//	3  level     1   of the ciphertext that it is or belongs to
//	4  step      4   of a rotation; of an opening, the bits of its flooding
const (
	version    = 1
	headerSize = 8
)

// Kind says what a message is.
type Kind uint8

const (
	KindCiphertext Kind = iota + 1
	KindPublic
	KindRelinearisation1
	KindRelinearisation2
	KindRotation
	KindRefresh
	KindOpening
	KindSwitching
	KindShare
	KindInput
	KindSwitched
)

var kindNames = map[Kind]string{
	KindCiphertext: "ciphertext", KindPublic: "part of a public key",
	KindRelinearisation1: "first part of a relinearisation key", KindRelinearisation2: "second part of a relinearisation key",
	KindRotation: "part of a rotation key", KindRefresh: "refresh part", KindOpening: "opening part",
	KindSwitching: "switching part", KindShare: "part that makes shares", KindInput: "part that encrypts shares",
	KindSwitched: "ciphertext for a receiver",
}

func (k Kind) String() string {
	if name, found := kindNames[k]; found {
		return name
	}
	return "message of unknown kind"
}

type header struct {
	kind  Kind
	set   uint8
	level int
	step  int
}

// openLevel is the level at which a ciphertext is opened: more moduli say nothing more.
func openLevel(level int) int { return min(level, 1) }

// rows are the moduli of the residues that follow the header, one for each row of n.
func (h header) rows(m *Machine) []uint64 {
	q, full := m.Moduli, append(append([]uint64{}, m.Moduli...), m.Special)
	switch h.kind {
	case KindCiphertext:
		return repeated(q[:h.level+1], 2)
	case KindPublic:
		return full
	case KindRelinearisation1:
		return repeated(full, 2*len(q))
	case KindRelinearisation2, KindRotation:
		return repeated(full, len(q))
	case KindRefresh:
		return append(append([]uint64{}, q[:m.RefreshLevel+1]...), q...)
	case KindShare:
		return q[:m.RefreshLevel+1]
	case KindInput:
		return q
	case KindOpening:
		return q[:openLevel(h.level)+1]
	}
	return repeated(q[:openLevel(h.level)+1], 2)
}

func repeated(list []uint64, times int) []uint64 {
	out := make([]uint64, 0, times*len(list))
	for range times {
		out = append(out, list...)
	}
	return out
}

// check holds a header against the parameter set.
func (h header) check(m *Machine) error {
	if _, known := kindNames[h.kind]; !known || h.set != m.ID {
		return fault.New(fault.Message, "a %v of parameter set %d was not expected", h.kind, h.set)
	}
	isKey := h.kind >= KindPublic && h.kind <= KindRotation || h.kind == KindInput
	lowest := 0
	if h.kind == KindRefresh || h.kind == KindShare {
		lowest = m.RefreshLevel
	}
	if h.level > m.top || h.level < lowest || isKey && h.level != m.top {
		return fault.New(fault.Message, "a %v has no level %d", h.kind, h.level)
	}
	if h.kind == KindOpening || h.kind == KindSwitching || h.kind == KindSwitched {
		return checkFlooding(h.step)
	}
	power := h.step > 0 && bits.OnesCount(uint(h.step)) == 1 && h.step < m.Slots()
	if h.kind == KindRotation != power || !power && h.step != 0 {
		return fault.New(fault.Message, "a %v for a rotation by %d makes no sense", h.kind, h.step)
	}
	return nil
}

// Size is the length of a message.
func Size(set uint8, kind Kind, level, step int, insecure bool) (int, error) {
	m, err := MachineOf(set, insecure)
	if err != nil {
		return 0, err
	}
	h := header{kind: kind, set: set, level: level, step: step}
	if err := h.check(m); err != nil {
		return 0, err
	}
	return h.size(m), nil
}

func (h header) size(m *Machine) int { return headerSize + 8*m.n*len(h.rows(m)) }

// write puts the header and the rows into a buffer of the right length.
func (h header) write(m *Machine, out []byte, rows [][]uint64) error {
	if err := h.room(m, out); err != nil {
		return err
	}
	out[0], out[1], out[2], out[3] = version, byte(h.kind), h.set, byte(h.level)
	binary.LittleEndian.PutUint32(out[4:], uint32(h.step))
	for k, row := range rows {
		place := out[headerSize+8*m.n*k:]
		for i, value := range row {
			binary.LittleEndian.PutUint64(place[8*i:], value)
		}
	}
	return nil
}

func (h header) room(m *Machine, out []byte) error {
	if err := h.check(m); err != nil {
		return err
	}
	if size := h.size(m); len(out) != size {
		return fault.New(fault.Argument, "a %v needs a buffer of %d bytes, not %d", h.kind, size, len(out))
	}
	return nil
}

// peek reads the header alone.
func peek(message []byte) (header, error) {
	if len(message) < headerSize {
		return header{}, fault.New(fault.Message, "a message of %d bytes is too short for a header", len(message))
	}
	if message[0] != version {
		return header{}, fault.New(fault.Message, "message version %d is unknown", message[0])
	}
	step := binary.LittleEndian.Uint32(message[4:])
	return header{kind: Kind(message[1]), set: message[2], level: int(message[3]), step: int(step)}, nil
}

// read checks a message of the kind and gives its rows.
func (m *Machine) read(message []byte, want Kind) (header, [][]uint64, error) {
	h, err := peek(message)
	if err != nil {
		return h, nil, err
	}
	if h.kind != want {
		return h, nil, fault.New(fault.Message, "a %v was expected, not a %v", want, h.kind)
	}
	if err := h.check(m); err != nil {
		return h, nil, err
	}
	if size := h.size(m); len(message) != size {
		return h, nil, fault.New(fault.Message, "a %v has %d bytes, not %d", want, size, len(message))
	}
	limits := h.rows(m)
	rows := make([][]uint64, len(limits))
	err = parallel.Run(len(rows), func(_, k int) error {
		rows[k] = make([]uint64, m.n)
		place := message[headerSize+8*m.n*k:]
		for i := range rows[k] {
			value := binary.LittleEndian.Uint64(place[8*i:])
			if value >= limits[k] {
				return fault.New(fault.Message, "a %v has a residue that is not below its modulus", want)
			}
			rows[k][i] = value
		}
		return nil
	})
	return h, rows, err
}

// Total adds the parties' parts of one thing.
func Total(set uint8, parts [][]byte, out []byte, insecure bool) error {
	m, err := MachineOf(set, insecure)
	if err != nil {
		return err
	}
	if len(parts) == 0 || len(parts) > m.MaxParties {
		return fault.New(fault.Argument, "%d parts: from 1 to %d are possible", len(parts), m.MaxParties)
	}
	first, err := peek(parts[0])
	if err != nil {
		return err
	}
	if first.kind == KindCiphertext || first.kind == KindSwitched {
		return fault.New(fault.Argument, "a %v is not a part of anything", first.kind)
	}
	var sum [][]uint64
	for _, part := range parts {
		h, rows, err := m.read(part, first.kind)
		if err != nil {
			return err
		}
		if h != first {
			return fault.New(fault.Message, "the parts do not belong to the same %v", first.kind)
		}
		if sum == nil {
			sum = rows
			continue
		}
		limits := first.rows(m)
		for k, row := range rows {
			for i, value := range row {
				total := sum[k][i] + value
				if total >= limits[k] {
					total -= limits[k]
				}
				sum[k][i] = total
			}
		}
	}
	return first.write(m, out, sum)
}
