package recording

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// indexPoint is where a piece of an archive begins: its first line, its time, and the counters before it.
type indexPoint struct {
	File       string      `json:"file"`
	S          int64       `json:"s"`
	T          loop.Micros `json:"t"`
	Events     int64       `json:"events"`
	Deltas     int64       `json:"deltas"`
	Rounds     int64       `json:"rounds"`
	ModelCalls int64       `json:"model_calls"`
	ToolCalls  int64       `json:"tool_calls"`
	Tokens     int64       `json:"tokens"`
	Chain      string      `json:"chain,omitempty"` // digest of the lines before it
}

// Index is index.json of an archive.
type Index struct {
	Version  int          `json:"v"`
	Header   Header       `json:"header"`
	Footer   *Footer      `json:"footer,omitempty"`
	Segments []indexPoint `json:"segments"`
	// Artifacts gives the type of each artifact by its reference.
	Artifacts map[string]string `json:"artifacts,omitempty"`
}

const (
	indexName      = "index.json"
	artifactFolder = "artifacts/"
)

// zipSink writes an archive: lines in pieces of segmentLines, artifacts beside them, the index last.
type zipSink struct {
	z     *zip.Writer
	index Index
	seg   []byte // of the piece that is being collected
	held  []Artifact
}

// NewArchive begins a .ronda file. Artifacts are kept in memory until the piece of lines that they stand before is full.
func NewArchive(w io.Writer, h Header, o WriteOptions) (*Writer, error) {
	if o.Redactor != nil {
		h.Title = o.Redactor.Redact(h.Title)
	}
	sink := &zipSink{z: zip.NewWriter(w), index: Index{Version: Version, Artifacts: map[string]string{}}}
	wr, err := newWriter(sink, h, o)
	if err == nil {
		sink.index.Header = wr.head
	}
	return wr, err
}

func (s *zipSink) line(line []byte, at indexPoint) error {
	if at.S%segmentLines == 0 {
		if err := s.flush(); err != nil {
			return err
		}
		at.File = fmt.Sprintf("lines/%06d.jsonl", len(s.index.Segments))
		s.index.Segments = append(s.index.Segments, at)
	}
	s.seg = append(s.seg, line...)
	return nil
}

func (s *zipSink) artifact(a Artifact) (bool, error) {
	s.held = append(s.held, a)
	s.index.Artifacts[a.Ref] = a.MIME
	return false, nil
}

func (s *zipSink) flush() error {
	for _, a := range s.held {
		if err := s.file(artifactFolder+strings.Replace(a.Ref, ":", "-", 1), a.Data); err != nil {
			return err
		}
	}
	s.held = nil
	if len(s.seg) == 0 {
		return nil
	}
	err := s.file(s.index.Segments[len(s.index.Segments)-1].File, s.seg)
	s.seg = s.seg[:0]
	return err
}

func (s *zipSink) file(name string, data []byte) error {
	f, err := s.z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		return fmt.Errorf("recording: write %s: %w", name, err)
	}
	return nil
}

func (s *zipSink) close(f Footer) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.index.Footer = &f
	data, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	if err := s.file(indexName, data); err != nil {
		return err
	}
	return s.z.Close()
}

// Archive is an opened .ronda file. Opening reads the index and nothing else. It is safe for concurrent use where the reader below is.
type Archive struct {
	z     *zip.Reader
	files map[string]*zip.File
	Index Index
}

// OpenArchive opens a .ronda file of the given size.
func OpenArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, &FormatError{ErrFormat, -1, "it is no zip: " + err.Error()}
	}
	a := &Archive{z: z, files: map[string]*zip.File{}}
	for _, f := range z.File {
		a.files[f.Name] = f
	}
	data, err := a.read(indexName, maxArtifact)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &a.Index); err != nil {
		return nil, &FormatError{ErrFormat, -1, "its index cannot be read: " + err.Error()}
	}
	for i, s := range a.Index.Segments {
		if a.files[s.File] == nil {
			return nil, &FormatError{ErrFormat, s.S, "the piece " + s.File + " is not in the archive"}
		}
		if i > 0 && s.S <= a.Index.Segments[i-1].S || i == 0 && s.S != 0 {
			return nil, &FormatError{ErrFormat, s.S, "the index is out of order"}
		}
	}
	if len(a.Index.Segments) == 0 {
		return nil, &FormatError{ErrFormat, -1, "it has no lines"}
	}
	return a, nil
}

func (a *Archive) read(name string, limit int64) ([]byte, error) {
	f := a.files[name]
	if f == nil {
		return nil, &FormatError{ErrFormat, -1, "it has no " + name}
	}
	rc, err := f.Open()
	if err != nil {
		return nil, &FormatError{ErrFormat, -1, name + ": " + err.Error()}
	}
	defer rc.Close()
	data, err := io.ReadAll(io.LimitReader(rc, limit+1))
	if err != nil {
		return nil, &FormatError{ErrFormat, -1, name + ": " + err.Error()}
	}
	if int64(len(data)) > limit {
		return nil, &FormatError{ErrTooLarge, -1, name}
	}
	return data, nil
}

// Artifact reads the bytes of a reference; false if they are not in the file, or are not what the reference says.
func (a *Archive) Artifact(ref string) (Artifact, bool) {
	data, err := a.read(artifactFolder+strings.Replace(ref, ":", "-", 1), maxArtifact)
	if err != nil || Ref(data) != ref {
		return Artifact{}, false
	}
	return Artifact{Ref: ref, MIME: a.Index.Artifacts[ref], Data: data}, true
}

// refs lists the artifacts of the archive.
func (a *Archive) refs() []string {
	var out []string
	for _, f := range a.z.File {
		if name, ok := strings.CutPrefix(f.Name, artifactFolder); ok {
			out = append(out, strings.Replace(name, "-", ":", 1))
		}
	}
	return out
}

// From returns a reader that begins with the piece that holds line s: the pieces before it are not read. Texts whose deltas lie before that
// piece are not there; see Reader.Partial.
func (a *Archive) From(s int64) *Reader {
	i := len(a.Index.Segments) - 1
	for i > 0 && a.Index.Segments[i].S > s {
		i--
	}
	return a.reader(i)
}

// FromTime is From by time since the start.
func (a *Archive) FromTime(t loop.Micros) *Reader {
	i := len(a.Index.Segments) - 1
	for i > 0 && a.Index.Segments[i].T > t {
		i--
	}
	return a.reader(i)
}

// Reader returns a reader of all lines.
func (a *Archive) Reader() *Reader { return a.reader(0) }

func (a *Archive) reader(segment int) *Reader {
	r := newReader(&segmentReader{a: a, next: segment})
	r.resolve = a.Artifact
	r.started = a.Index.Header.Started
	r.head = a.Index.Header
	if segment > 0 {
		at := a.Index.Segments[segment]
		r.Partial, r.line, r.at = true, at.S, at.T
		r.chained = r.chain.parse(at.Chain)
		r.headed = true
	}
	return r
}

// segmentReader reads the pieces of an archive one after the other.
type segmentReader struct {
	a    *Archive
	next int
	cur  io.ReadCloser
}

func (s *segmentReader) Read(p []byte) (int, error) {
	for {
		if s.cur == nil {
			if s.next >= len(s.a.Index.Segments) {
				return 0, io.EOF
			}
			rc, err := s.a.files[s.a.Index.Segments[s.next].File].Open()
			if err != nil {
				return 0, err
			}
			s.cur, s.next = rc, s.next+1
		}
		n, err := s.cur.Read(p)
		if err == io.EOF {
			_ = s.cur.Close()
			s.cur, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}
