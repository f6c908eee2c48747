//go:build !(cgo && amd64)

package vector

import "github.com/tuneinsight/lattigo/v6/ring"

var integersHere = false

func newIntegers(*ring.SubRing) Modulus { panic("vector: this build has no IFMA kernels") }
