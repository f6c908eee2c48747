package parallel

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"atoll/core/fault"
)

// onCores runs the test with so many workers, whatever the machine has.
func onCores(t *testing.T, cores int) {
	before := runtime.GOMAXPROCS(cores)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestEveryStepRunsOnce(t *testing.T) {
	for _, cores := range []int{1, 4} {
		onCores(t, cores)
		var counts [1000]atomic.Int32
		err := Run(len(counts), func(worker, i int) error {
			if worker < 0 || worker >= Workers(len(counts)) {
				t.Errorf("worker %d does not exist", worker)
			}
			counts[i].Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range counts {
			if counts[i].Load() != 1 {
				t.Fatalf("step %d ran %d times on %d cores", i, counts[i].Load(), cores)
			}
		}
	}
}

func TestAnErrorEndsTheRun(t *testing.T) {
	for _, cores := range []int{1, 4} {
		onCores(t, cores)
		wrong := errors.New("wrong")
		var after atomic.Int32
		err := Run(1_000_000, func(_, i int) error {
			after.Add(1)
			if i == 3 {
				return wrong
			}
			return nil
		})
		if !errors.Is(err, wrong) || after.Load() == 1_000_000 {
			t.Fatal(err, after.Load())
		}
	}
}

func TestAPanicInAWorkerIsAnError(t *testing.T) {
	onCores(t, 4)
	err := Run(10, func(_, i int) error {
		if i == 5 {
			panic("five")
		}
		return nil
	})
	if fault.KindOf(err) != fault.Internal || err.Error() != "internal error: five" {
		t.Fatal(err)
	}
}

func TestNothingToDo(t *testing.T) {
	if err := Run(0, func(_, _ int) error { return errors.New("ran") }); err != nil {
		t.Fatal(err)
	}
}
