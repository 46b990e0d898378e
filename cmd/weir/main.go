// Command weir limits rates. It serves decisions over HTTP, paces the lines of a pipe, fetches pages politely,
// and replays access logs to show what limits would have decided.
package main

import (
	"os"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

func main() { os.Exit(program.RunAs(os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
