//go:build !cgo || !amd64

package sample

func newKeyStream(key [32]byte) keyStream { return newPortable(key) }
