// Synthetic-corpus writes a corpus of any size for benchmarks of prepare:
// documents of made-up words, drawn by Zipf's law, three line breaks apart. Equal
// flags give equal bytes, and no two documents are alike.
//
//	go run ./scripts/synthetic-corpus -bytes 10e9 -o corpus.txt
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

func main() {
	size := flag.Float64("bytes", 100e6, "bytes to write, about")
	sentences := flag.Int("sentences", 30, "most sentences of a document, each of some 75 bytes")
	seed := flag.Uint64("seed", 1, "of the words and their order")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := run(*out, int64(*size), *sentences, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "synthetic-corpus:", err)
		os.Exit(1)
	}
}

func run(path string, size int64, sentences int, seed uint64) error {
	if path == "" || size < 1 || sentences < 1 {
		return errors.New("want a file in -o, and 1 or more bytes and sentences")
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w, size, sentences, seed); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// write writes documents until there are size bytes.
func write(w io.Writer, size int64, most int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	words := vocabulary(r, 50_000)
	zipf := rand.NewZipf(r, 1.1, 4, uint64(len(words)-1))
	var doc []byte
	for written := int64(0); written < size; written += int64(len(doc)) {
		doc = doc[:0]
		for sentences := 1 + r.IntN(most); sentences > 0; sentences-- {
			start := len(doc)
			for n := 4 + r.IntN(20); n > 0; n-- {
				doc = append(append(doc, words[zipf.Uint64()]...), ' ')
			}
			doc[start] -= 'a' - 'A'
			doc[len(doc)-1] = '.'
			doc = append(doc, "\n "[sentences%2])
		}
		doc = append(doc[:len(doc)-1], "\n\n\n"...)
		if _, err := w.Write(doc); err != nil {
			return err
		}
	}
	return nil
}

// vocabulary makes n words of one to four syllables.
func vocabulary(r *rand.Rand, n int) []string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	words := make([]string, n)
	for i := range words {
		var word []byte
		for range 1 + r.IntN(4) {
			word = append(word, consonants[r.IntN(len(consonants))], vowels[r.IntN(len(vowels))])
		}
		words[i] = string(word)
	}
	return words
}
