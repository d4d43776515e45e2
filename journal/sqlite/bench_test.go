package sqlite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/journal/sqlite"
	"github.com/ronda-go/ronda/loop"
)

// load makes what a driver appends for a run: rounds of two batches with five events, of which payload bytes are a result.
type load struct {
	rounds, payload int
	noise           bool // the result is random: nothing of it can be packed away
}

const t0 loop.Micros = 1_764_547_200_000_000

func digest(r *rand.Rand) string {
	sum := sha256.Sum256(fmt.Append(nil, r.Uint64()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

var words = strings.Fields(`the customer ordered a red chair on and it came with one leg broken so she asks for another or her
	money el cliente pide la devolución del importe porque el pedido llegó tarde policy returns within thirty days of delivery
	when the parcel was damaged please write to us before sending anything back invoice number address street city`)

func (l load) result(r *rand.Rand) string {
	var b strings.Builder
	for b.Len() < l.payload {
		if l.noise {
			b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[r.IntN(64)])
			continue
		}
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(6) == 0 {
			fmt.Fprintf(&b, " %d", r.IntN(10000))
		}
		b.WriteByte(' ')
	}
	return b.String()[:l.payload]
}

// batches returns the records of a run: those of Create, then two for each round, then the end.
func (l load) batches(r *rand.Rand, run string) [][]journal.Record {
	var out [][]journal.Record
	seq := int64(0)
	now := t0 + loop.Micros(r.Int64N(1e12))
	batch := func(bodies ...loop.Body) {
		var rs []journal.Record
		for _, body := range bodies {
			seq++
			now += loop.Micros(r.Int64N(2e6))
			data, err := loop.Encode(loop.Event{Seq: seq, Time: now, Body: body})
			if err != nil {
				panic(err)
			}
			rs = append(rs, journal.Record{Seq: seq, Data: data})
		}
		out = append(out, rs)
	}
	asked := func(call int64) loop.Body {
		return loop.ModelCallStarted{Call: call, Reserve: loop.Reserve{Input: r.Int64N(9000), Output: 8192, Cost: loop.Pico(r.Int64N(1e12))}}
	}
	replied := func(call int64, finish loop.Finish, blocks ...loop.Block) loop.Body {
		return loop.ModelReplied{Call: call, Blocks: blocks, Finish: finish, ID: fmt.Sprintf("msg_01%022x", r.Uint64()),
			Usage: &loop.Usage{Input: r.Int64N(1000), CacheRead: r.Int64N(9000), Output: r.Int64N(400)}}
	}
	rounds := int64(l.rounds)
	batch(loop.RunStarted{Run: run, By: "ana", Input: []loop.Block{{Kind: loop.BlockText, Text: "Answer case 4812"}}, Config: &loop.Config{
		Agent: "support", Model: "anthropic/claude-sonnet-4-5", Digest: digest(r), Limits: loop.Limits{Rounds: &rounds}, Nudges: 1, Repairs: 3,
		Stall: loop.Stall{Repeats: 3}, ModelRetries: 3, Price: &loop.Price{Input: 3_000_000, CacheRead: 300_000, CacheWrite: 3_750_000, Output: 15_000_000},
		Tools: []loop.ToolSpec{{Name: "read_case", Digest: digest(r), Effect: loop.Read}, {Name: "find_policy", Digest: digest(r), Effect: loop.Read},
			{Name: "save_draft", Digest: digest(r), Effect: loop.Idempotent}, {Name: "send_reply", Digest: digest(r)}},
	}}, asked(1))
	for i := range int64(l.rounds) {
		call := fmt.Sprintf("%d.0", seq+1)
		args := fmt.Sprintf(`{"id":%d}`, r.IntN(10000))
		batch(replied(i+1, loop.FinishCalls, loop.Block{Kind: loop.BlockCall, ID: fmt.Sprintf("toolu_01%020x", r.Uint64()), Call: call, Name: "read_case", Args: args}),
			loop.CallAuthorized{Call: call, Verdict: loop.Allow, Args: digest(r), Digest: digest(r)}, loop.ToolStarted{Call: call})
		batch(loop.ToolReturned{Call: call, Text: l.result(r)}, asked(i+2))
	}
	batch(replied(int64(l.rounds)+1, loop.FinishStop, loop.Block{Kind: loop.BlockText, Text: l.result(r)[:min(300, l.payload)]}),
		loop.RunStopped{Stop: loop.StopCompleted, Answer: seq + 1})
	return out
}

// drive appends a run as a driver does: each batch waits for the one before.
func drive(t testing.TB, s journal.Store, id string, batches [][]journal.Record) {
	row := journal.Run{
		ID: id, Agent: "support", Model: "anthropic/claude-sonnet-4-5", Status: journal.Running, Created: t0, Title: "Answer case 4812",
		Digest:  "sha256:c8b1d6a2f7e35d0c8f43a90de1b27650cc41f8e6b7d9a3f2514e0d7c6b8a9f01",
		Summary: []byte(`{"rounds":3,"model_calls":4,"tool_calls":3,"tokens":4120,"cost":123000000000}`),
	}
	l, err := s.Create(t.Context(), journal.Batch{Lease: journal.Lease{Run: id, Owner: s.Owner()}, Records: batches[0], Run: row})
	if err != nil {
		t.Error(err)
		return
	}
	after := int64(len(batches[0]))
	for i, rs := range batches[1:] {
		if i == len(batches)-2 {
			row.Status, row.Stop = journal.Stopped, loop.StopCompleted
		}
		row.Updated = t0 + loop.Micros(after)
		if _, err := s.Append(t.Context(), journal.Batch{Lease: l, After: after, Records: rs, Run: row}); err != nil {
			t.Error(err)
			return
		}
		after += int64(len(rs))
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// benchmarkRuns has atOnce runs going at any time; an iteration is one whole run.
func benchmarkRuns(b *testing.B, s journal.Store, l load, atOnce int) {
	r := rand.New(rand.NewPCG(1, 2))
	made := make([][][]journal.Record, 64) // what drivers would make is not measured
	for i := range made {
		made[i] = l.batches(r, "run_0001")
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				drive(b, s, fmt.Sprintf("run_01k%020d", i), made[i%len(made)])
			}
		})
	}
	b.ReportAllocs()
	before := cpu()
	b.ResetTimer()
	for i := range b.N {
		next <- i
	}
	close(next)
	wg.Wait()
	b.StopTimer()
	used := cpu() - before
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N*l.rounds), "cpu-µs/round")
	if s, ok := s.(*sqlite.Store); ok {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		size, err := s.Size()
		if err != nil {
			b.Error(err)
		}
		b.ReportMetric(float64(size)/float64(b.N), "bytes/run")
	}
}

// Command: go test -run - -bench Runs -benchtime 4000x ./journal/sqlite
func BenchmarkRuns(b *testing.B) {
	for _, atOnce := range []int{1, 32, 256} {
		for _, noise := range []bool{false, true} {
			l := load{rounds: 10, payload: 1024, noise: noise}
			kind := map[bool]string{false: "text", true: "noise"}[noise]
			b.Run(fmt.Sprintf("memory/%s/%d", kind, atOnce), func(b *testing.B) { benchmarkRuns(b, memory.New(), l, atOnce) })
			for _, durability := range []string{"normal", "full"} {
				b.Run(fmt.Sprintf("sqlite-%s/%s/%d", durability, kind, atOnce), func(b *testing.B) {
					benchmarkRuns(b, open(b, filepath.Join(b.TempDir(), "ronda.db"), sqlite.Options{Durability: durability}), l, atOnce)
				})
			}
		}
	}
}

// BenchmarkOpen measures what a process pays before it can do anything, on a file that exists and on a new one.
func BenchmarkOpen(b *testing.B) {
	once := func(b *testing.B, path string) {
		s, err := sqlite.Open(path, sqlite.Options{})
		if err == nil {
			_, err = s.List(b.Context(), journal.Query{})
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("existing", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "ronda.db")
		for b.Loop() {
			once(b, path)
		}
	})
	b.Run("new", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			once(b, filepath.Join(dir, fmt.Sprint(i), "ronda.db"))
		}
	})
}

// BenchmarkResume measures reading a journal of 10 rounds from its begin.
func BenchmarkResume(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "ronda.db"), sqlite.Options{})
	drive(b, s, "run_1", load{rounds: 10, payload: 1024}.batches(rand.New(rand.NewPCG(1, 2)), "run_1"))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Read(b.Context(), "run_1", 0, func(journal.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
