package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/console"
)

func get(t *testing.T, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var asset = regexp.MustCompile(`(?:src|href)="\./((?:assets/|icon)[^"]+)"`)

func TestFirstLoad(t *testing.T) {
	h := console.Handler()
	page := get(t, h, "GET", "/")
	if page.Code != http.StatusOK || page.Header().Get("Content-Security-Policy") != console.Policy || page.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("GET /: %d, %v", page.Code, page.Header())
	}
	if strings.Contains(console.Policy, "unsafe") {
		t.Errorf("the policy allows something unsafe: %s", console.Policy)
	}
	names := asset.FindAllStringSubmatch(page.Body.String(), -1)
	if len(names) < 3 {
		t.Fatalf("the page names %d files, want script, style and icon:\n%s", len(names), page.Body)
	}
	total := compressed(t, page.Body.Bytes())
	for _, n := range names {
		f := get(t, h, "GET", "/"+n[1])
		if f.Code != http.StatusOK {
			t.Fatalf("GET /%s: %d", n[1], f.Code)
		}
		if strings.HasPrefix(n[1], "assets/") && !strings.Contains(f.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("/%s: Cache-Control is %q", n[1], f.Header().Get("Cache-Control"))
		}
		total += compressed(t, f.Body.Bytes())
		again := get(t, h, "GET", "/"+n[1], "If-None-Match", f.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("/%s again: %d with %d bytes, want 304 with none", n[1], again.Code, again.Body.Len())
		}
	}
	t.Logf("first load: %d bytes gzipped", total)
	if most := 70 << 10; total > most {
		t.Errorf("the first load is %d bytes gzipped, want at most %d", total, most)
	}
}

func compressed(t *testing.T, data []byte) int {
	t.Helper()
	var n counter
	w := gzip.NewWriter(&n)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return int(n)
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func TestNothingElse(t *testing.T) {
	h := console.Handler()
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/none", 404}, {"GET", "/assets/", 404}, {"GET", "/../console.go", 404}, {"GET", "/dist/index.html", 404},
		{"POST", "/", 405}, {"HEAD", "/", 200}, {"GET", "/index.html", 200},
	} {
		w := get(t, h, c.method, c.path)
		if w.Code != c.want || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: %d with the policy %q, want %d", c.method, c.path, w.Code, w.Header().Get("Content-Security-Policy"), c.want)
		}
		if body, _ := io.ReadAll(w.Body); c.method == "HEAD" && len(body) > 0 {
			t.Errorf("HEAD %s has a body of %d bytes", c.path, len(body))
		}
	}
}
