package corpus

// Leaks counts held-out documents that are, or resemble, documents of another
// split.
type Leaks struct {
	ValInTrain  int64 `json:"val_in_train"`
	TestInTrain int64 `json:"test_in_train"`
	TestInVal   int64 `json:"test_in_val"`
}

// Total returns the sum of the counts.
func (l Leaks) Total() int64 { return l.ValInTrain + l.TestInTrain + l.TestInVal }

// LeakCheck looks for held-out documents in other splits. Feed it the documents
// of val, then of test, then of train. It remembers the held-out documents only:
// about 16 bytes for each, and with near duplicates about 200 more for each of
// at most a window of them.
type LeakCheck struct {
	near      NearOptions
	useNear   bool
	exact     map[uint64]flags
	index     *nearIndex
	signed    []flags // of the documents in index
	unchecked int64   // held-out documents beyond the window

	exactLeaks, nearLeaks Leaks
}

// flags say what is known of a held-out document.
type flags uint8

const (
	inVal flags = 1 << iota
	inTest
	valCounted
	testCounted
)

// NewLeakCheck returns an empty check; without near it looks for equal documents
// only.
func NewLeakCheck(near *NearOptions) *LeakCheck {
	c := &LeakCheck{exact: make(map[uint64]flags), index: newNearIndex()}
	if near != nil {
		c.near, c.useNear = *near, true
	}
	return c
}

// Add checks one document. sig may be nil when near duplicates are not looked for.
func (c *LeakCheck) Add(split Split, sum Sum256, sig *Signature) {
	f, held := c.exact[sum.key()]
	if held || split != Train {
		c.exact[sum.key()] = meet(f, split, &c.exactLeaks)
	}
	if !c.useNear || sig == nil {
		return
	}
	leaked := false
	c.index.each(sig, c.near.Threshold, func(id uint32) bool {
		if split == Test {
			// The document at hand is the one that counts, once.
			if !leaked && c.signed[id]&inVal != 0 {
				c.nearLeaks.TestInVal++
				leaked = true
			}
			return true
		}
		if split == Train {
			c.signed[id] = meet(c.signed[id], Train, &c.nearLeaks)
		}
		return true
	})
	if split == Train {
		return
	}
	if c.index.len() >= c.near.Window {
		c.unchecked++
		return
	}
	c.index.add(sig)
	c.signed = append(c.signed, flagOf(split))
}

func flagOf(s Split) flags {
	if s == Val {
		return inVal
	}
	return inTest
}

// meet counts what it means that a document with these flags is met in a split.
func meet(f flags, split Split, leaks *Leaks) flags {
	switch split {
	case Train:
		if f&inVal != 0 && f&valCounted == 0 {
			leaks.ValInTrain++
			f |= valCounted
		}
		if f&inTest != 0 && f&testCounted == 0 {
			leaks.TestInTrain++
			f |= testCounted
		}
		return f
	case Test:
		if f&inVal != 0 && f&inTest == 0 {
			leaks.TestInVal++
		}
	}
	return f | flagOf(split)
}

// Leaks returns the counts of distinct documents that are equal, and of those
// that are similar (equal ones among them).
func (c *LeakCheck) Leaks() (exact, near Leaks) { return c.exactLeaks, c.nearLeaks }

// Unchecked returns how many held-out documents were not checked for near
// duplicates because the window was full.
func (c *LeakCheck) Unchecked() int64 { return c.unchecked }
