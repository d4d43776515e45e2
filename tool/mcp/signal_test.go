//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// signalGroup fails where nobody of the group is left.
func signalGroup(p *os.Process) error { return syscall.Kill(-p.Pid, 0) }
