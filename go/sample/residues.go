package sample

// Polynomials hold `count` residues for each of some moduli, one modulus after the other; their first words are
// random ones before. All functions here work in constant time, and give the same on every processor.

// Binomials fills a polynomial with Binomial of random words, modulo each modulus.
func Binomials(poly []uint64, moduli []uint64) {
	if !binomialsFast(poly, moduli) {
		small(poly, moduli, Binomial)
	}
}

// Ternaries fills a polynomial with Ternary of random words, modulo each modulus.
func Ternaries(poly []uint64, moduli []uint64) {
	if !ternariesFast(poly, moduli) {
		small(poly, moduli, Ternary)
	}
}

func small(poly []uint64, moduli []uint64, draw func(uint64) int64) {
	count := len(poly) / len(moduli)
	first := poly[:count]
	for i, word := range first {
		first[i] = uint64(draw(word))
	}
	for l := len(moduli) - 1; l >= 0; l-- { // the first limb, where the numbers are, last
		q, part := moduli[l], poly[l*count:(l+1)*count]
		for i, value := range first {
			part[i] = Residue(int64(value), q)
		}
	}
}

// Uppers leaves the upper 52 bits of every word, and tells whether all of them are below q.
func Uppers(words []uint64, q uint64) bool {
	if below, can := uppersFast(words, q); can {
		return below
	}
	below := true
	for i, word := range words {
		words[i] = word >> (64 - 52)
		below = below && words[i] < q
	}
	return below
}
