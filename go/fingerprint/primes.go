package fingerprint

import (
	"math/bits"

	"atoll/core/fault"
)

// bases are enough to be certain below 2^64 (Sorenson and Webster, 2015).
var bases = [12]uint64{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}

// FirstPrime is the first of the candidates that is prime.
func FirstPrime(candidates []uint64) (uint64, error) {
	for _, candidate := range candidates {
		if isPrime(candidate) {
			return candidate, nil
		}
	}
	return 0, fault.New(fault.Argument, "none of %d numbers is prime", len(candidates))
}

// isPrime is the test of Miller and Rabin.
func isPrime(n uint64) bool {
	for _, base := range bases {
		if n%base == 0 {
			return n == base
		}
	}
	if n == 1 {
		return false
	}
	for _, base := range bases {
		if !passes(n, base) {
			return false
		}
	}
	return true
}

// passes says whether base^(n-1) comes to 1 modulo n as it does for a prime: from 1, or from -1.
func passes(n, base uint64) bool {
	twos := bits.TrailingZeros64(n - 1)
	x := uint64(1)
	for bit := 63; bit >= twos; bit-- {
		x = times(x, x, n)
		if (n-1)>>bit&1 == 1 {
			x = times(x, base, n)
		}
	}
	if x == 1 || x == n-1 {
		return true
	}
	for range twos - 1 {
		if x = times(x, x, n); x == n-1 {
			return true
		}
	}
	return false
}

// times is a·b modulo n, for a and b below n: then the high word is below n as well.
func times(a, b, n uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return bits.Rem64(high, low, n)
}
