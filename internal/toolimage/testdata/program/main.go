// Command program prints what was stamped into it.
package main

import "os"

var version, commit string

func main() { _, _ = os.Stdout.WriteString(version + " " + commit + "\n") }
