package recording

import (
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/loop"
)

// Report is what Verify found.
type Report struct {
	Runs, Events, Deltas int64
	CutOff               bool // no footer: not broken, but not whole
	Problems             []error
}

// OK says that nothing is wrong. A file that was cut off can be right as far as it goes.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks a recording that was read: the chain, that nothing is missing, that each run's events are gapless and fold, and that the
// footer says what is there. Masked recordings (Metadata) need not fold.
func Verify(rec *Recording) Report {
	rep := Report{CutOff: rec.CutOff, Runs: int64(len(rec.Runs))}
	if rec.Broken != nil {
		rep.Problems = append(rep.Problems, rec.Broken)
	}
	rep.Problems = append(rep.Problems, rec.Missing...)
	for i := range rec.Runs {
		run := &rec.Runs[i]
		rep.Events += int64(len(run.Events))
		for _, tape := range run.Tapes {
			pieces, err := DecodeTape(tape)
			if err != nil {
				rep.Problems = append(rep.Problems, err)
			}
			rep.Deltas += int64(len(pieces))
		}
		if rec.Header.Capture == Metadata {
			continue
		}
		if _, err := run.Fold(); err != nil {
			var ev *loop.EventError
			if errors.As(err, &ev) {
				err = fmt.Errorf("event %d of run %s does not fold: %w", ev.Seq, run.Run, err)
			}
			rep.Problems = append(rep.Problems, err)
		}
	}
	f := rec.Footer
	switch {
	case f == nil:
	case f.Events != rep.Events:
		rep.Problems = append(rep.Problems, fmt.Errorf("the footer counts %d events, there are %d", f.Events, rep.Events))
	case f.Runs != len(rec.Runs):
		rep.Problems = append(rep.Problems, fmt.Errorf("the footer counts %d runs, there are %d", f.Runs, len(rec.Runs)))
	case rec.Header.Capture != Metadata && f.Status != "" && len(rep.Problems) == 0:
		if st, err := rec.Root().Fold(); err == nil {
			if counts := st.Ledger.Total(); counts != f.Counts || st.Ledger.TotalCost() != f.Cost {
				rep.Problems = append(rep.Problems, fmt.Errorf("the account is wrong: the footer says %+v, the events %+v", f.Counts, counts))
			}
		}
	}
	return rep
}
