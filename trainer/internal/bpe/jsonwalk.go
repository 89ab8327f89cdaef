package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// eachMember calls fn for each member of a JSON object, in the file's order. Unlike
// json.Unmarshal into a map or struct it refuses a name that comes twice and takes names
// by their exact case, so that no value is lost without a word.
func eachMember(data []byte, fn func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	start, err := dec.Token()
	if err != nil {
		return brokenJSON(err)
	}
	if start != json.Delim('{') {
		return fmt.Errorf("want a JSON object, got %s", excerpt(data))
	}
	seen := make(map[string]struct{})
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return brokenJSON(err)
		}
		name, ok := token.(string)
		if !ok {
			return fmt.Errorf("want the name of a JSON member, got %v", token)
		}
		if _, ok := seen[name]; ok {
			return fmt.Errorf("%q is there twice", name)
		}
		seen[name] = struct{}{}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return brokenJSON(err)
		}
		if err := fn(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return brokenJSON(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows the JSON object")
	}
	return nil
}

// brokenJSON words an error of the JSON decoder; the end of the file in the middle of a
// value is the usual sign of a file cut short.
func brokenJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the JSON ends too early: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// isNull tells whether a value is JSON's null.
func isNull(value json.RawMessage) bool { return string(value) == "null" }

// parseString, parseBool and parseID take one JSON type each and nothing like it.
func parseString(value json.RawMessage) (string, error) {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", fmt.Errorf("want a string, got %s", excerpt(value))
	}
	return s, nil
}

func parseBool(value json.RawMessage) (bool, error) {
	switch string(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("want true or false, got %s", excerpt(value))
}

func parseID(value json.RawMessage) (int32, error) {
	n, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("want a token id, got %s", excerpt(value))
	}
	return int32(n), nil
}

// excerpt shows the beginning of a value on one line.
func excerpt(data []byte) string {
	const most = 40
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
