//go:build linux

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDiskFull lets the disk under the store fill up while the command runs, at ever later moments: the command says so, nothing that was
// acknowledged is lost, and once there is room the run goes on without doing anything twice.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("mounts a small file system")
	}
	for spare := 0; spare <= 640; spare += 64 {
		r := newRonda(t)
		disk := filepath.Join(r.dir, "disk")
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
			t.Skipf("a tmpfs cannot be mounted here (%v): the test needs root", err)
		}
		unmount := func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }
		t.Cleanup(unmount)
		run := func(args ...string) (s shown, code int, stderr string) {
			c := exec.Command(os.Args[0], append(args, "--store", "sqlite://"+filepath.Join(disk, "ronda.db"), "--by", "ana")...)
			c.Dir = r.dir
			c.Env = append(os.Environ(), "RONDA_TEST_MAIN=1")
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			err := c.Run()
			var ee *exec.ExitError
			if errors.As(err, &ee) {
				code = ee.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			_ = json.Unmarshal(out.Bytes(), &s)
			return s, code, errs.String()
		}
		if _, code, stderr := run("runs", "--json"); code != 0 { // makes the store
			t.Fatal(stderr)
		}
		fill(t, filepath.Join(disk, "filler"), spare<<10)
		s, code, stderr := run("run", ".", "Do it.", "--scripted", "--json")
		full := code == 1
		if full && !strings.Contains(stderr, "disk full") && !strings.Contains(stderr, "no space left") {
			t.Errorf("with %d KiB to spare: the error does not say that the disk is full: %s", spare, stderr)
		}
		if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
			t.Fatal(err)
		}
		id := s.Run
		if id == "" {
			if id = firstOf(t, run); id == "" {
				unmount()
				continue // the disk was full before the run was there: nothing was promised
			}
		}
		for range 20 {
			s, _, stderr = run("resume", id, "--json")
			if s.Status == "stopped" {
				break
			}
			for _, p := range s.Pending {
				switch p.Kind {
				case "approval":
					_, _, stderr = run("approve", id, p.Call, "--json")
				case "resolution":
					happened := "--happened=false"
					if len(r.effects()[p.Tool]) > 0 {
						happened = "--happened=true"
					}
					_, _, stderr = run("resolve", id, p.Call, happened, "--json")
				}
			}
		}
		if s.Stop != "completed" {
			t.Errorf("with %d KiB to spare: the run ended %q (%s): %s", spare, s.Stop, s.Status, stderr)
		}
		for _, once := range []string{"pay", "refund"} {
			if n := len(r.effects()[once]); n > 1 {
				t.Errorf("with %d KiB to spare: %s happened %d times", spare, once, n)
			}
		}
		if _, code, stderr := run("verify", id); code != 0 {
			t.Errorf("with %d KiB to spare: verify: %s", spare, stderr)
		}
		t.Logf("%d KiB to spare: full %t", spare, full)
		unmount()
	}
}

// fill writes a file until only so many bytes are left.
func fill(t *testing.T, path string, spare int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	size := int64(0)
	for {
		n, err := f.Write(block)
		size += int64(n)
		if err != nil {
			break
		}
	}
	if err := f.Truncate(max(size-int64(spare), 0)); err != nil {
		t.Fatal(err)
	}
}

func firstOf(t *testing.T, run func(args ...string) (shown, int, string)) string {
	t.Helper()
	s, _, _ := run("show", "last", "--json")
	return s.Run
}
