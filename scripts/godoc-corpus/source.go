package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// source is one Go file and the import path of its package.
type source struct {
	path, pkg string
}

// goFiles lists the files of the standard library, sorted by import path and
// name. Tests, test data, commands and what is vendored are left out.
func goFiles(src string) ([]source, error) {
	var files []source
	err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			if rel == "cmd" || name == "testdata" || name == "vendor" || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go") && !strings.HasPrefix(d.Name(), "_") {
			files = append(files, source{path: p, pkg: path.Dir(rel)})
		}
		return nil
	})
	sort.Slice(files, func(i, j int) bool {
		if files[i].pkg != files[j].pkg {
			return files[i].pkg < files[j].pkg
		}
		return files[i].path < files[j].path
	})
	return files, err
}

// documents returns the documented declarations of a file in their order.
func documents(s source) ([][]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var docs [][]byte
	add := func(head, comment string) {
		if comment = strings.TrimSpace(comment); comment != "" {
			docs = append(docs, squeeze(fmt.Sprintf("%s\n\n%s", head, comment)))
		}
	}
	add(fmt.Sprintf("package %s // import %q", file.Name.Name, s.pkg), file.Doc.Text())
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			doc := d.Doc.Text()
			d.Doc, d.Body = nil, nil
			head, err := render(fset, d)
			if err != nil {
				return nil, err
			}
			add(head, doc)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			head, err := general(fset, d)
			if err != nil {
				return nil, err
			}
			add(head, comments(d))
		}
	}
	return docs, nil
}

// general returns a declaration of types, constants or variables by the names
// that it gives.
func general(fset *token.FileSet, d *ast.GenDecl) (string, error) {
	var names []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			kind := "type " + s.Name.Name
			switch s.Type.(type) {
			case *ast.StructType:
				kind += " struct"
			case *ast.InterfaceType:
				kind += " interface"
			default:
				text, err := render(fset, s.Type)
				if err != nil {
					return "", err
				}
				kind += " " + text
			}
			names = append(names, kind)
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names = append(names, d.Tok.String()+" "+n.Name)
			}
		}
	}
	if len(names) > 8 {
		names = append(names[:8], "...")
	}
	return strings.Join(names, "\n"), nil
}

// comments returns the comment of a declaration, and those of its parts.
func comments(d *ast.GenDecl) string {
	parts := []string{strings.TrimSpace(d.Doc.Text())}
	ast.Inspect(d, func(n ast.Node) bool {
		var names []*ast.Ident
		var doc, line *ast.CommentGroup
		switch n := n.(type) {
		case *ast.TypeSpec:
			names, doc, line = []*ast.Ident{n.Name}, n.Doc, n.Comment
		case *ast.ValueSpec:
			names, doc, line = n.Names, n.Doc, n.Comment
		case *ast.Field:
			names, doc, line = n.Names, n.Doc, n.Comment
		default:
			return true
		}
		text := strings.TrimSpace(doc.Text() + line.Text())
		if text != "" && len(names) > 0 {
			parts = append(parts, names[0].Name+": "+text)
		}
		return true
	})
	return strings.Join(parts, "\n")
}

func render(fset *token.FileSet, node any) (string, error) {
	var b bytes.Buffer
	err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&b, fset, node)
	return b.String(), err
}

// squeeze leaves at most one empty line in a row: two would end the document.
func squeeze(text string) []byte {
	var b bytes.Buffer
	empty := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" && empty {
			continue
		}
		empty = line == ""
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
