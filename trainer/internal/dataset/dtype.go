package dataset

import (
	"encoding/binary"
	"fmt"
)

// DType is how a token is stored.
type DType string

// The types of tokens, little-endian.
const (
	Uint16 DType = "uint16"
	Uint32 DType = "uint32"
)

// DTypeFor returns the smallest type for a vocabulary of so many tokens.
func DTypeFor(vocab int) DType {
	if vocab > 65535 {
		return Uint32
	}
	return Uint16
}

// Size returns the bytes of a token, 0 for an unknown type.
func (t DType) Size() int {
	switch t {
	case Uint16:
		return 2
	case Uint32:
		return 4
	}
	return 0
}

// Validate reports an unknown type.
func (t DType) Validate() error {
	if t.Size() == 0 {
		return fmt.Errorf("token_dtype is %q: want %s or %s", t, Uint16, Uint32)
	}
	return nil
}

// append appends tokens as bytes. A token that the type cannot hold is an error.
func (t DType) append(dst []byte, ids []int32) ([]byte, error) {
	for _, id := range ids {
		if id < 0 || t == Uint16 && id > 0xffff {
			return dst, fmt.Errorf("token %d does not fit into %s", id, t)
		}
		if t == Uint16 {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(id))
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
		}
	}
	return dst, nil
}

// decode reads len(dst) tokens from src. A uint32 above the largest int32 comes
// out negative, which every model refuses.
func (t DType) decode(dst []int32, src []byte) {
	if t == Uint16 {
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint32(src[4*i:]))
	}
}
