//go:build !cgo || !amd64

package sample

func binomialsFast(_, _ []uint64) bool { return false }

func ternariesFast(_, _ []uint64) bool { return false }

func uppersFast([]uint64, uint64) (below, can bool) { return false, false }
