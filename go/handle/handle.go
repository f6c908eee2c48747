// Package handle keeps Go objects alive for callers that hold only a number.
//
// Numbers are never used twice, so a closed handle stays closed: it cannot
// come to mean another object.
package handle

import (
	"sync"

	"atoll/core/fault"
)

// ID is an opaque handle; zero is never one.
type ID uint64

var (
	mutex   sync.Mutex
	last    ID
	objects = map[ID]any{}
)

// Put stores an object and returns its handle.
func Put(object any) ID {
	mutex.Lock()
	defer mutex.Unlock()
	last++
	objects[last] = object
	return last
}

// Get returns the object behind id if it is a T.
func Get[T any](id ID) (T, error) {
	mutex.Lock()
	object, found := objects[id]
	mutex.Unlock()
	typed, fits := object.(T)
	if !found {
		return typed, fault.New(fault.Closed, "handle %d is closed", id)
	}
	if !fits {
		return typed, fault.New(fault.Argument, "handle %d belongs to a %T, not to a %T", id, object, typed)
	}
	return typed, nil
}

// Close forgets the object and lets it free what is not on Go's heap; closing twice is an error the caller may ignore.
func Close(id ID) error {
	mutex.Lock()
	object, found := objects[id]
	delete(objects, id)
	mutex.Unlock()
	if !found {
		return fault.New(fault.Closed, "handle %d is closed", id)
	}
	if owner, owns := object.(interface{ Free() }); owns {
		owner.Free()
	}
	return nil
}

// Live counts the open handles.
func Live() int {
	mutex.Lock()
	defer mutex.Unlock()
	return len(objects)
}
