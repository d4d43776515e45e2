//go:build !unix

package sqlite_test

import (
	"testing"
	"time"
)

func asNobody(t *testing.T, _, _, _ string) string {
	t.Helper()
	t.Skip("modes are those of unix")
	return ""
}

func cpu() time.Duration { return 0 }
