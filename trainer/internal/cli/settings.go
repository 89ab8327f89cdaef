package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

const (
	configFlag = "config"
	envPrefix  = "TRAINER_"
	maxConfig  = 1 << 20 // bytes of a configuration file
)

// settle gives every flag of cmd that the command line does not set its value
// from the environment or from the configuration file.
func settle(cmd *cobra.Command, getenv func(string) string) error {
	path := cmd.Flag(configFlag).Value.String()
	if path == "" {
		path = getenv(envName(configFlag))
	}
	file := map[string][]string{}
	if path != "" {
		raw, err := readConfig(path)
		if err != nil {
			return err
		}
		if file, err = parseConfig(raw, cmd); err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s: %w", path, err)
		}
	}
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == configFlag || f.Name == "help" {
			return
		}
		if v := getenv(envName(f.Name)); v != "" {
			if err := cmd.Flags().Set(f.Name, v); err != nil {
				errs = append(errs, exitcode.Errorf(exitcode.Usage, "%s=%q: %w", envName(f.Name), v, err))
			}
			return
		}
		for _, v := range file[f.Name] {
			if err := cmd.Flags().Set(f.Name, v); err != nil {
				errs = append(errs, exitcode.Errorf(exitcode.Usage, "%s: %s: %w", path, f.Name, err))
			}
		}
	})
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// envName is the variable of a flag: max-iters is TRAINER_MAX_ITERS.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "%s: %w", configFlag, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "%s: %w", configFlag, err)
	}
	if len(raw) > maxConfig {
		return nil, exitcode.Errorf(exitcode.Usage, "%s: %s has more than %d bytes", configFlag, path, maxConfig)
	}
	return raw, nil
}

// parseConfig returns the values for cmd's flags. A key is the name of a flag of
// any subcommand, so that one file serves a whole lifecycle, or the name of a
// subcommand with keys of its own, which win.
func parseConfig(raw []byte, cmd *cobra.Command) (map[string][]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	values := map[string][]string{}
	if len(doc.Content) == 0 {
		return values, nil // an empty file, or comments alone
	}
	all := flagNames(cmd.Root())
	sections := map[string]*cobra.Command{}
	for _, c := range cmd.Root().Commands() {
		sections[c.Name()] = c
	}
	own := map[string][]string{}
	err := eachKey(doc.Content[0], func(key, value *yaml.Node) error {
		section, isSection := sections[key.Value]
		if isSection && value.Kind == yaml.MappingNode {
			names := flagNames(section)
			return eachKey(value, func(k, v *yaml.Node) error {
				into := map[string][]string{}
				if section == cmd {
					into = own
				}
				return take(into, names, k, v, "of "+section.Name())
			})
		}
		return take(values, all, key, value, "of any subcommand")
	})
	for k, v := range own {
		values[k] = v
	}
	return values, err
}

// eachKey calls f for the pairs of a mapping and refuses a key that is there twice.
func eachKey(n *yaml.Node, f func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want keys and values", n.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return fmt.Errorf("line %d: key %s is there twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if err := f(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func take(into map[string][]string, known []string, key, value *yaml.Node, whose string) error {
	if !slices.Contains(known, key.Value) {
		return fmt.Errorf("line %d: %s is no flag %s", key.Line, key.Value, whose)
	}
	text, err := scalars(value)
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
	}
	into[key.Value] = text
	return nil
}

// scalars returns a value, or the values of a list, as a command line would give them.
func scalars(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, errors.New("no value")
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, errors.New("want a value or a list of values")
	}
	var out []string
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return nil, errors.New("want a list of plain values")
		}
		out = append(out, c.Value)
	}
	return out, nil
}

// flagNames lists the flags of a command and everything below it.
func flagNames(c *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if f.Name != configFlag && f.Name != "help" {
			names = append(names, f.Name)
		}
	}
	c.Flags().VisitAll(add)
	c.PersistentFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	for _, sub := range c.Commands() {
		names = append(names, flagNames(sub)...)
	}
	return names
}
