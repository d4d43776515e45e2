//go:build !unix

package command

import (
	"os"
	"os/exec"
)

// Without process groups only the program itself is ended.

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) error { return p.Kill() }

func killGroup(*os.Process) {}

func diedBy(s *os.ProcessState) string { return s.String() }

func scarce(error) bool { return false }
