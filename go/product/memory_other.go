//go:build !linux

package product

func mapWords(n int) []uint64 { return make([]uint64, n) }

func unmapWords([]uint64) {}
