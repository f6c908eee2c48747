// Package ifma holds the kernels on AVX-512 IFMA, in Go's assembler: a package
// that speaks C, as vector does, cannot hold any.
package ifma
