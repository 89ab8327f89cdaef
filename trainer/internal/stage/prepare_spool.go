package stage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
)

// spooled is a document and what is known of it.
type spooled struct {
	text []byte // valid during the call that hands it over
	sum  corpus.Sum256
	sig  corpus.Signature // zero where near duplicates are not looked for
}

// spool is a file of documents on their way from reading to encoding: a
// tokenizer can be learnt only when all of the train split is known, which may
// be more than fits into memory. Each document has its length before it.
type spool struct {
	file *os.File
	w    *bufio.Writer
	docs int64
}

func newSpool(path string) (*spool, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (s *spool) add(d spooled) error {
	var length [binary.MaxVarintLen64]byte
	s.docs++
	for _, part := range [][]byte{length[:binary.PutUvarint(length[:], uint64(len(d.text)))], d.sum[:], d.sig[:], d.text} {
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with every document.
func (s *spool) each(f func(d spooled) error) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.file, 256<<10)
	var d spooled
	for {
		n, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.file.Name(), err)
		}
		if uint64(cap(d.text)) < n {
			d.text = make([]byte, n)
		}
		d.text = d.text[:n]
		for _, part := range [][]byte{d.sum[:], d.sig[:], d.text} {
			if _, err := io.ReadFull(r, part); err != nil {
				return fmt.Errorf("%s: %w", s.file.Name(), err)
			}
		}
		if err := f(d); err != nil {
			return err
		}
	}
}

// errStop ends each early without an error of its own.
var errStop = errors.New("stop")

// all iterates over the texts.
func (s *spool) all(yield func([]byte, error) bool) {
	err := s.each(func(d spooled) error {
		if !yield(d.text, nil) {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		yield(nil, err)
	}
}

func (s *spool) close() {
	if s != nil {
		_ = s.file.Close()
	}
}
