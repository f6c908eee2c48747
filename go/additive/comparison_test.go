package additive

import (
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
)

// The alternative that docs/explanation/lattice-sums.md argues against: BGV with
// packed slots, 192-bit values split over four prime plaintext moduli of 51 bits
// (the sum of 1024 needs 202 bits). Only encoding and encryption are timed, the
// splitting by the Chinese remainder theorem is not.
func BenchmarkBGV190653(b *testing.B) {
	params, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN: 12, LogQ: []int{54, 30}, PlaintextModulus: 0x7fffffffe0001,
	})
	if err != nil {
		b.Fatal(err)
	}
	_, public := rlwe.NewKeyGenerator(params).GenKeyPairNew()
	encoder, encryptor := bgv.NewEncoder(params), rlwe.NewEncryptor(params, public)
	values := make([]uint64, params.MaxSlots())
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range values {
		values[i] = rng.Uint64() % params.PlaintextModulus()
	}
	plain, cipher := bgv.NewPlaintext(params, params.MaxLevel()), bgv.NewCiphertext(params, 1, params.MaxLevel())
	polynomials := 4 * ((190653 + params.MaxSlots() - 1) / params.MaxSlots())
	for b.Loop() {
		for range polynomials {
			if err := encoder.Encode(values, plain); err != nil {
				b.Fatal(err)
			}
			if err := encryptor.Encrypt(plain, cipher); err != nil {
				b.Fatal(err)
			}
		}
	}
	bits := 84 * 2 * polynomials * params.N()
	b.ReportMetric(float64(bits)/8/1e6, "MB")
}
