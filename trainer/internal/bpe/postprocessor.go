package bpe

import (
	"encoding/json"
	"fmt"
)

// checkPostProcessor accepts the two forms that add nothing to a text: ByteLevel, which
// GPT-2's published file has, and a template without special tokens, which newer releases
// of transformers write for GPT-2.
func checkPostProcessor(value json.RawMessage) error {
	if isNull(value) {
		return nil
	}
	kind := ""
	var single []json.RawMessage
	err := eachMember(value, func(name string, value json.RawMessage) error {
		var err error
		switch name {
		case "type":
			kind, err = parseString(value)
		case "single":
			if json.Unmarshal(value, &single) != nil {
				err = fmt.Errorf("want a list, got %s", excerpt(value))
			}
		case "special_tokens":
			// A template can name only tokens that are listed here.
			err = eachMember(value, func(name string, _ json.RawMessage) error {
				return fmt.Errorf("token %s around a text is not supported", excerpt([]byte(name)))
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind != "TemplateProcessing":
		return checkByteLevel(value, false)
	case len(single) != 1:
		return fmt.Errorf("single: a template of %d parts is not supported: only the text itself is", len(single))
	}
	return nil
}
