// Package cli is yard's command line: one file a verb. A verb parses its flags,
// calls the package that does the work and prints the report; the work itself
// belongs elsewhere.
//
// To add a verb, write a file with a function that returns its *cobra.Command and
// name that function in verbs.
package cli
