package safetensors

import "fmt"

// DType names the type of a tensor's elements as the format does.
type DType string

// The types that this package converts; others can be listed, not read.
const (
	F32  DType = "F32"
	F16  DType = "F16"  // IEEE 754 binary16
	BF16 DType = "BF16" // the upper half of an F32
	U8   DType = "U8"
	I64  DType = "I64"
	U64  DType = "U64"
)

// Size returns the bytes of one element, and 0 for a type that this package
// does not know (among them the format's types of less than a byte).
func (d DType) Size() int {
	switch d {
	case U8, "I8", "BOOL", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ":
		return 1
	case F16, BF16, "I16", "U16":
		return 2
	case F32, "I32", "U32":
		return 4
	case I64, U64, "F64", "C64":
		return 8
	}
	return 0
}

// ParseFloat returns the floating-point type with the given name, in the
// format's spelling or in PyTorch's: F32 or float32, F16 or float16, BF16 or
// bfloat16.
func ParseFloat(name string) (DType, error) {
	switch name {
	case "F32", "f32", "float32":
		return F32, nil
	case "F16", "f16", "float16":
		return F16, nil
	case "BF16", "bf16", "bfloat16":
		return BF16, nil
	}
	return "", fmt.Errorf("unknown dtype %q: use float32, float16 or bfloat16", name)
}
