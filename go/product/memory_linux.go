package product

import (
	"syscall"
	"unsafe"
)

// mapWords asks the system for pages outside Go's heap, huge ones if it has them.
func mapWords(n int) []uint64 {
	const flags = syscall.MAP_ANON | syscall.MAP_PRIVATE
	data, err := syscall.Mmap(-1, 0, n*8, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return make([]uint64, n) // the heap says itself when there is no memory
	}
	_ = syscall.Madvise(data, syscall.MADV_HUGEPAGE) // only a wish
	return unsafe.Slice((*uint64)(unsafe.Pointer(&data[0])), n)
}

func unmapWords(block []uint64) {
	// A block that came from the heap is not known to Munmap, which then leaves it to the collector.
	_ = syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&block[0])), len(block)*8))
}
