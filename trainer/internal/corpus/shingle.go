package corpus

// rollBase is odd and has no structure: the golden ratio in 64 bits.
const rollBase = 0x9e3779b97f4a7c15

// maxGram is the longest run of characters that a roller hashes.
const maxGram = 32

// roller hashes each run of n characters of a text in constant time by a
// polynomial over the integers modulo 2^64 (Karp and Rabin, 1987).
type roller struct {
	ring [maxGram]uint64
	n    int
	at   int
	fill int
	out  uint64 // rollBase^n
	sum  uint64
}

func (g *roller) reset(n int) {
	*g = roller{n: n, out: 1}
	for range n {
		g.out *= rollBase
	}
}

// push adds a character and reports whether n have come.
func (g *roller) push(r rune) bool {
	c := uint64(r) + 1
	g.sum = g.sum*rollBase + c - g.ring[g.at]*g.out
	g.ring[g.at] = c
	if g.at++; g.at == g.n {
		g.at = 0
	}
	if g.fill < g.n {
		g.fill++
	}
	return g.fill == g.n
}

// hash returns the hash of the last n characters.
func (g *roller) hash() uint64 { return mix(g.sum) }

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
