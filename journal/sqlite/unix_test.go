//go:build unix

package sqlite_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asNobody runs the test binary at exe as a user who owns nothing, and returns what it says.
func asNobody(t *testing.T, exe, act, path string) string {
	t.Helper()
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "RONDA_TEST_CHILD="+act, "RONDA_TEST_PATH="+path)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Skipf("needs leave to run a process as another user: %v %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
