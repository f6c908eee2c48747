package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryErrorHasItsKind(t *testing.T) {
	for _, one := range []struct {
		err  error
		kind Kind
	}{
		{nil, OK},
		{New(Key, "another key"), Key},
		{fmt.Errorf("inside: %w", New(Range, "too large")), Range},
		{errors.New("not ours"), Internal},
		{Recovered("a bug"), Internal},
	} {
		if got := KindOf(one.err); got != one.kind {
			t.Fatalf("%v has the kind %d, not %d", one.err, got, one.kind)
		}
	}
}
