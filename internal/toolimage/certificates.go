package toolimage

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// DebianCertificates is where Debian's ca-certificates keeps Mozilla's roots,
// without those that an administrator added to the machine.
const DebianCertificates = "/usr/share/ca-certificates/mozilla"

// ReadCertificates reads the CA certificates of a PEM file, or of all .crt files
// of a directory in the order of their names. What is not a certificate (comments
// for example) is left out, a certificate that does not parse is an error.
func ReadCertificates(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read CA certificates (in Debian: apt-get install ca-certificates): %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		// Glob sorts.
		if files, err = filepath.Glob(filepath.Join(path, "*.crt")); err != nil {
			return nil, fmt.Errorf("read CA certificates: %w", err)
		}
	}
	var out bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read CA certificates: %w", err)
		}
		if err := appendCertificates(&out, data); err != nil {
			return nil, fmt.Errorf("read CA certificates: %s: %w", f, err)
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("%s: no CA certificate in it", path)
	}
	return out.Bytes(), nil
}

func appendCertificates(out *bytes.Buffer, data []byte) error {
	for n := 1; ; n++ {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("PEM block %d is a %q, not a certificate", n, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("PEM block %d: %w", n, err)
		}
		if err := pem.Encode(out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return err
		}
	}
}
