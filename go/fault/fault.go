// Package fault names what can go wrong in the core, so that the C surface can
// hand Python a code and Python can raise the exception of its own tree.
package fault

import (
	"errors"
	"fmt"
)

// Kind is the code that crosses the C surface; golib.py holds the same table.
type Kind int32

const (
	OK       Kind = 0
	Internal Kind = 1 // a bug in the core, or a recovered panic
	Argument Kind = 2 // the caller passed something that makes no sense
	Message  Kind = 3 // bytes from elsewhere are malformed
	Key      Kind = 4 // bytes were made under another key
	Range    Kind = 5 // a value or a count is beyond the headroom
	Closed   Kind = 6 // the handle is closed, or never was one
)

// Error carries a kind and a sentence without secrets.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// New formats an error of the given kind.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// KindOf is the code to report for err; what is not ours is Internal.
func KindOf(err error) Kind {
	if err == nil {
		return OK
	}
	var ours *Error
	if errors.As(err, &ours) {
		return ours.Kind
	}
	return Internal
}

// Recovered turns a recovered panic value into an error.
func Recovered(cause any) error {
	return New(Internal, "internal error: %v", cause)
}
