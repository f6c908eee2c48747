package handle

import (
	"sync"
	"testing"

	"atoll/core/fault"
)

type thing struct{ name string }

func TestAHandleFindsItsObjectUntilClosed(t *testing.T) {
	id := Put(&thing{"one"})
	got, err := Get[*thing](id)
	if err != nil || got.name != "one" {
		t.Fatal(got, err)
	}
	if err := Close(id); err != nil {
		t.Fatal(err)
	}
	if _, err := Get[*thing](id); fault.KindOf(err) != fault.Closed {
		t.Fatal(err)
	}
	if err := Close(id); fault.KindOf(err) != fault.Closed {
		t.Fatal(err)
	}
}

func TestAHandleOfAnotherKindIsRefused(t *testing.T) {
	id := Put(&thing{})
	defer Close(id)
	if _, err := Get[*int](id); fault.KindOf(err) != fault.Argument {
		t.Fatal(err)
	}
}

func TestNumbersAreNeverUsedTwice(t *testing.T) {
	var (
		group sync.WaitGroup
		mutex sync.Mutex
		seen  = map[ID]bool{}
	)
	before := Live()
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 1000 {
				id := Put(&thing{})
				mutex.Lock()
				if id == 0 || seen[id] {
					t.Errorf("handle %d came twice, or is zero", id)
				}
				seen[id] = true
				mutex.Unlock()
				if err := Close(id); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	if Live() != before {
		t.Fatalf("%d handles are left", Live()-before)
	}
}

type owner struct{ freed int }

func (o *owner) Free() { o.freed++ }

func TestClosingFreesWhatIsNotOnTheHeap(t *testing.T) {
	object := &owner{}
	id := Put(object)
	if err := Close(id); err != nil || object.freed != 1 {
		t.Fatal(err, object.freed)
	}
	if Close(id) == nil || object.freed != 1 {
		t.Fatalf("freed %d times", object.freed)
	}
}
