package corpus

import "fmt"

// FilterOptions say which cleaned documents are dropped. A zero turns a rule off.
type FilterOptions struct {
	MinChars       int     `json:"min_chars"`        // characters
	MaxSymbolRatio float64 `json:"max_symbol_ratio"` // symbols among the characters
	MaxRepetition  float64 `json:"max_repetition"`   // see Measurer
}

// DefaultFilter drops documents of fewer than 20 characters, and those with more
// than 30 % symbols or repetition.
func DefaultFilter() FilterOptions {
	return FilterOptions{MinChars: 20, MaxSymbolRatio: 0.3, MaxRepetition: 0.3}
}

// Validate reports the first option out of range.
func (f FilterOptions) Validate() error {
	if f.MinChars < 0 {
		return fmt.Errorf("min-chars is %d: want 0 or more", f.MinChars)
	}
	if !(f.MaxSymbolRatio >= 0 && f.MaxSymbolRatio <= 1) {
		return fmt.Errorf("max-symbol-ratio is %v: want 0 to 1", f.MaxSymbolRatio)
	}
	if !(f.MaxRepetition >= 0 && f.MaxRepetition <= 1) {
		return fmt.Errorf("max-repetition is %v: want 0 to 1", f.MaxRepetition)
	}
	return nil
}

// Fate is what became of a document.
type Fate uint8

// The fates, in the order in which they are decided.
const (
	Kept Fate = iota
	TooShort
	TooManySymbols
	TooRepetitive
	ExactDuplicate
	NearDuplicate
	Fates // how many there are
)

// String returns the name used in reports.
func (f Fate) String() string {
	return [...]string{"kept", "too_short", "symbols", "repetition", "exact_duplicate", "near_duplicate", "?"}[min(f, Fates)]
}

// Judge returns the first rule that drops a document with these measures.
func (f FilterOptions) Judge(m Measures) Fate {
	switch {
	case m.Chars == 0 || m.Chars < f.MinChars:
		return TooShort
	case f.MaxSymbolRatio > 0 && m.SymbolRatio() > f.MaxSymbolRatio:
		return TooManySymbols
	case f.MaxRepetition > 0 && m.Repetition > f.MaxRepetition:
		return TooRepetitive
	}
	return Kept
}
