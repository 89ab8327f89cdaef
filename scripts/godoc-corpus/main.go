// Godoc-corpus prints the doc comments of the installed Go standard library as a
// text to train on: nothing is downloaded and nothing is shipped.
//
//	go run ./scripts/godoc-corpus [-bytes 2000000] [-o FILE]
//
// A document is one documented declaration: a package clause, a function, a
// method, a type with its fields, or a group of constants or variables. It is the
// declaration (of functions without the body, of groups the names) followed by its
// comment and those of its parts.
// Documents come in the order of import path, file and position, separated by
// three newlines. -bytes stops before the document that would go beyond it, so
// the output ends with a whole one.
//
// The text depends on the Go release alone, not on the machine: files of all
// operating systems are read.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// separator goes between documents, the first newline being the end of the line
// before: no comment has as many.
const separator = "\n\n\n"

func main() {
	limit := flag.Int64("bytes", 0, "stop before going beyond so many bytes; 0 prints all")
	out := flag.String("o", "", "file to write instead of standard output")
	root := flag.String("goroot", "", "root of the Go tree; the default is what go env GOROOT says")
	flag.Parse()
	if err := run(*root, *out, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "godoc-corpus:", err)
		os.Exit(1)
	}
}

func run(root, out string, limit int64) error {
	if root == "" {
		b, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return fmt.Errorf("go env GOROOT: %w", err)
		}
		root = strings.TrimSpace(string(b))
	}
	if out == "" {
		return write(os.Stdout, root, limit)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o775); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(out), ".godoc-corpus-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f, root, limit); err != nil {
		return err
	}
	if err := f.Chmod(0o664); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

// write prints the documents up to the limit.
func write(w io.Writer, root string, limit int64) error {
	files, err := goFiles(filepath.Join(root, "src"))
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(w)
	var written int64
	for _, f := range files {
		docs, err := documents(f)
		if err != nil {
			return err
		}
		for _, d := range docs {
			d = bytes.TrimSpace(d)
			n := int64(len(d) + 1)
			if written > 0 {
				n += int64(len(separator) - 1)
			}
			if limit > 0 && written+n > limit {
				return buf.Flush()
			}
			if written > 0 {
				buf.WriteString(separator[1:])
			}
			buf.Write(d)
			buf.WriteByte('\n')
			written += n
		}
	}
	if written == 0 {
		return fmt.Errorf("%s: no documented declarations: is this the root of a Go tree?", root)
	}
	return buf.Flush()
}
