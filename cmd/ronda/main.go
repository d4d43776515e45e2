// Command ronda runs agents: see package cli. The examples are built in.
package main

import (
	"os"

	"github.com/ronda-go/ronda/cli"
	"github.com/ronda-go/ronda/examples"
)

func main() {
	os.Exit(cli.Program{Builtins: examples.Builtins(), Version: version}.Run(os.Args[1:]))
}

// version is set by the linker in releases.
var version = "development"
