package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "run this seed alone and print its journals")
	manyRuns = flag.Int("seeds", 0, "how many seeds to run (default: RONDA_SEEDS, else 2000; 200 with -short)")
	from     = flag.Uint64("from", 1, "the first seed")
)

func howMany() int {
	if *manyRuns > 0 {
		return *manyRuns
	}
	if n, err := strconv.Atoi(os.Getenv("RONDA_SEEDS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return 200
	}
	return 2000
}

// lived runs a world in a bubble of its own.
func lived(t *testing.T, seed uint64, p *plant, crash ...int) (o *Outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { o = simulate(seed, p, crash...) })
	return o
}

// compared lives a seed without a crash and with some, and lists what is wrong: invariants that did not hold, and ends that differ.
func compared(t *testing.T, seed uint64, p *plant) (problems []string, kinds map[string]int) {
	t.Helper()
	base := lived(t, seed, p)
	kinds = base.Kinds
	problems = list(base, "")
	if len(problems) > 0 {
		return problems, kinds
	}
	r := dice(seed, "crash")
	for i := range 2 {
		crash := []int{r.IntN(base.Points)}
		if i == 1 && in(r, 50) {
			crash = append(crash, crash[0]+1+r.IntN(12))
		}
		o := lived(t, seed, p, crash...)
		for k, n := range o.Kinds {
			kinds[k] += n
		}
		problems = append(problems, list(o, fmt.Sprintf(" (crash at %v of %d)", crash, base.Points))...)
		if len(problems) > 0 || base.Loose != "" || o.Loose != "" {
			continue
		}
		if diff := cmp.Diff(base.Ends, o.Ends); diff != "" {
			problems = append(problems, fmt.Sprintf("crash anywhere: crash at %v of %d: the ends differ (- without, + with):\n%s\nwithout:\n%s\nwith:\n%s", crash, base.Points, diff,
				all(base), all(o)))
		}
		if diff := cmp.Diff(base.Effects, o.Effects); diff != "" {
			problems = append(problems, fmt.Sprintf("crash anywhere: crash at %v: the effects differ:\n%s\nwithout:\n%s\nwith:\n%s", crash, diff, all(base), all(o)))
		}
	}
	return problems, kinds
}

func list(o *Outcome, where string) (problems []string) {
	told := map[string]bool{}
	for _, v := range o.Violations { // the first of each rule: one fault has many consequences
		if !told[v.Rule] {
			told[v.Rule] = true
			problems = append(problems, v.String()+where+"\n"+o.Journals[v.Run])
		}
	}
	return problems
}

func all(o *Outcome) (s string) {
	for _, run := range slices.Sorted(maps.Keys(o.Journals)) {
		s += run + "\n" + o.Journals[run]
	}
	return s
}

// TestSimulate asserts the invariants of the design over many drawn worlds.
func TestSimulate(t *testing.T) {
	if *oneSeed != 0 {
		problems, _ := compared(t, *oneSeed, nil)
		o := lived(t, *oneSeed, nil)
		t.Logf("loose: %q\n%s", o.Loose, all(o))
		for _, p := range problems {
			t.Errorf("seed %d: %s", *oneSeed, p)
		}
		return
	}
	n := howMany()
	var next, bad atomic.Int64
	var mu sync.Mutex
	kinds := map[string]int{}
	t.Run("worlds", func(t *testing.T) {
		for i := range 2 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					k := next.Add(1)
					if k > int64(n) || bad.Load() >= 5 {
						return
					}
					seed := *from + uint64(k) - 1
					problems, seen := compared(t, seed, nil)
					mu.Lock()
					for k, v := range seen {
						kinds[k] += v
					}
					mu.Unlock()
					for _, p := range problems {
						bad.Add(1)
						t.Errorf("seed %d (go test ./rondatest/sim -run TestSimulate -seed %d): %s", seed, seed, p)
					}
				}
			})
		}
	})
	t.Logf("%d seeds, each without and with crashes; events: %v", n, kinds)
}
