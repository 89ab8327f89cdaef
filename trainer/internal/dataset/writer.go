package dataset

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Writer writes the two files of a split.
type Writer struct {
	bin, idx *bufio.Writer
	dtype    DType
	buf      []byte

	docs, tokens, bytes int64
}

// NewWriter returns a writer of tokens to bin and of where documents begin to
// idx.
func NewWriter(bin, idx io.Writer, t DType) *Writer {
	return &Writer{bin: bufio.NewWriterSize(bin, 256<<10), idx: bufio.NewWriterSize(idx, 64<<10), dtype: t}
}

// Append writes one document: its tokens, with the one that ends it, which stand
// for so many bytes of text.
func (w *Writer) Append(ids []int32, bytes int) error {
	if err := w.mark(); err != nil {
		return err
	}
	w.docs++
	w.tokens += int64(len(ids))
	w.bytes += int64(bytes)
	var err error
	if w.buf, err = w.dtype.append(w.buf[:0], ids); err != nil {
		return err
	}
	_, err = w.bin.Write(w.buf)
	return err
}

func (w *Writer) mark() error {
	var pair [indexEntry]byte
	binary.LittleEndian.PutUint64(pair[:8], uint64(w.tokens))
	binary.LittleEndian.PutUint64(pair[8:], uint64(w.bytes))
	_, err := w.idx.Write(pair[:])
	return err
}

// Close writes the end of the index and flushes; it does not close the files.
func (w *Writer) Close() error {
	if err := w.mark(); err != nil {
		return err
	}
	if err := w.bin.Flush(); err != nil {
		return err
	}
	return w.idx.Flush()
}

// Counts returns what was written.
func (w *Writer) Counts() SplitMeta {
	return SplitMeta{Documents: w.docs, Tokens: w.tokens, Bytes: w.bytes}
}
