// Package cli is the trainer's command line: one file a verb. A verb parses its
// flags, wires a stage to files and terminal, and prints the report; what a
// stage does belongs to package stage.
//
// Every flag is also an environment variable, TRAINER_FLAG_NAME, and a key of
// the YAML file of --config. Flags win over variables, variables over the file.
//
// To add a verb, write a file with a function that returns its *cobra.Command
// and name that function in verbs.
package cli
