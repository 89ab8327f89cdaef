// Package fileset makes image layers out of files, directories and links in which
// nothing but names, modes, owners and contents can tell one machine from another:
// entries are sorted, times are fixed, compression is the same each time.
//
// It knows nothing of what the files are for.
package fileset
