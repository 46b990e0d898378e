// Command weir limits rates. It serves decisions over HTTP, paces the lines of a pipe, fetches pages politely,
// and replays access logs to show what limits would have decided.
package main

import "os"

func main() { os.Exit(Main()) }
