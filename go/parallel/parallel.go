// Package parallel spreads independent steps over the processor's cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"atoll/core/fault"
)

// Workers is how many goroutines Run starts for the given number of steps.
func Workers(steps int) int {
	return max(1, min(steps, runtime.GOMAXPROCS(0)))
}

// Run calls step(worker, i) once for every i in [0, steps); worker < Workers(steps)
// names the goroutine, so that a step may use that worker's buffers. The first
// error ends the run. A panic in a goroutine would end the whole process, so
// each worker recovers its own.
func Run(steps int, step func(worker, i int) error) error {
	workers := Workers(steps)
	if workers == 1 {
		return sequence(steps, step)
	}
	var (
		next  atomic.Int64
		group sync.WaitGroup
		once  sync.Once
		first error
	)
	fail := func(err error) {
		once.Do(func() { first = err })
		next.Store(int64(steps))
	}
	work := func(worker int) {
		defer group.Done()
		defer func() {
			if cause := recover(); cause != nil {
				fail(fault.Recovered(cause))
			}
		}()
		for i := int(next.Add(1)) - 1; i < steps; i = int(next.Add(1)) - 1 {
			if err := step(worker, i); err != nil {
				fail(err)
				return
			}
		}
	}
	group.Add(workers)
	for worker := range workers {
		go work(worker)
	}
	group.Wait()
	return first
}

func sequence(steps int, step func(worker, i int) error) error {
	for i := range steps {
		if err := step(0, i); err != nil {
			return err
		}
	}
	return nil
}
