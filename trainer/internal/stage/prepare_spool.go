package stage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool is a file of documents on their way from reading to encoding: a
// tokenizer can be learnt only when all of the train split is known, which may
// be more than fits into memory. Each document has its length before it.
type spool struct {
	file *os.File
	w    *bufio.Writer
	docs int64
	size int64 // bytes of the documents
}

func newSpool(path string) (*spool, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (s *spool) add(doc []byte) error {
	var head [binary.MaxVarintLen64]byte
	if _, err := s.w.Write(head[:binary.PutUvarint(head[:], uint64(len(doc)))]); err != nil {
		return err
	}
	s.docs++
	s.size += int64(len(doc))
	_, err := s.w.Write(doc)
	return err
}

// each calls f with every document, valid during the call.
func (s *spool) each(f func(doc []byte) error) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.file, 256<<10)
	var doc []byte
	for {
		n, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.file.Name(), err)
		}
		if uint64(cap(doc)) < n {
			doc = make([]byte, n)
		}
		doc = doc[:n]
		if _, err := io.ReadFull(r, doc); err != nil {
			return fmt.Errorf("%s: %w", s.file.Name(), err)
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}

// errStop ends each early without an error of its own.
var errStop = errors.New("stop")

// all is each as an iterator.
func (s *spool) all(yield func([]byte, error) bool) {
	err := s.each(func(doc []byte) error {
		if !yield(doc, nil) {
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
