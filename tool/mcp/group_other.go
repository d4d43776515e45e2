//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// Without process groups only the program itself is ended.

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) { _ = p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() }
