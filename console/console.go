// Package console is the web console: a page that shows runs, live and recorded, and lets people decide. Its files are built from
// console/web and embedded, so that no build of ronda needs Node; console/web/check.sh rebuilds and compares them.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed all:dist
var files embed.FS

// Policy is the Content-Security-Policy of the console: nothing but its own files, no inline scripts or styles, no frames, and no HTML made
// of strings.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// TravelPolicy is that of the one page that runs the loop: it compiles WebAssembly, which the others must not.
var TravelPolicy = strings.Replace(Policy, "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)

type file struct {
	data    []byte
	mime    string
	etag    string
	forever bool // its name changes with its content
	gzip    bool // it is kept compressed
}

// Handler serves the console's files. They hold nothing of anybody: whoever may reach the server may load them, and the API decides the rest.
// It is safe for concurrent use.
func Handler() http.Handler {
	all := map[string]file{}
	root, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // the files are part of the program
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		f := file{data: data, etag: `"` + hex.EncodeToString(sum[:12]) + `"`, forever: strings.HasPrefix(name, "assets/")}
		url := "/" + name
		if url, f.gzip = strings.CutSuffix(url, ".gz"); f.gzip {
			f.forever = false
		}
		f.mime = typeOf(url)
		all[url] = f
		return nil
	})
	if err != nil {
		panic(err)
	}
	all["/"] = all["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, all) })
}

func serve(w http.ResponseWriter, r *http.Request, all map[string]file) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	f, ok := all[r.URL.Path]
	if !ok {
		http.Error(w, "there is no such page: the console is at /, the API under /v1", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/travel.html" {
		h.Set("Content-Security-Policy", TravelPolicy)
	}
	h.Set("ETag", f.etag)
	h.Set("Content-Type", f.mime)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if f.gzip {
		h.Set("Content-Encoding", "gzip") // every browser that runs WebAssembly takes it
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.data) // a reader that went away is no concern of ours
	}
}

// typeOf does not ask the system's table, which differs from machine to machine.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".wasm":
		return "application/wasm"
	case ".json":
		return "application/json"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}
