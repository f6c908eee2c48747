//go:build !cgo || !(amd64 || arm64)

package vector

import (
	"os"

	"github.com/tuneinsight/lattigo/v6/ring"
)

const doublesBuilt = false

func newDoubles(*ring.SubRing) Modulus { panic("vector: this build has no kernels in C") }

func environment() string { return os.Getenv(Variable) }
