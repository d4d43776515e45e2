package scripted

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// stream gives blocks to a sink in deltas. The cuts fall at bytes, as on a network, at places that change from attempt to
// attempt and are the same whenever one attempt is served again.
type stream struct {
	m    *Model
	ctx  context.Context
	sink func(model.Delta) // nil: nobody listens, nothing is cut
	rnd  uint64
	sent int
}

// send gives the blocks to the sink, at most limit deltas of them (negative: all).
func (s *stream) send(blocks []loop.Block, limit int) error {
	if s.sink == nil {
		return nil
	}
	for i, b := range blocks {
		d := model.Delta{Block: i}
		text := b.Text
		switch b.Kind {
		case loop.BlockThought:
			d.Channel = model.Thought
		case loop.BlockText:
			d.Channel = model.Text
		case loop.BlockCall:
			d.Channel, d.Name, d.ID = model.Arguments, b.Name, b.ID
			text = b.Args
		default:
			continue
		}
		if err := s.pieces(d, text, limit); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) pieces(d model.Delta, text string, limit int) error {
	held := ""
	for first := true; text != "" || first && d.Name != ""; first = false {
		n := min(len(text), 1+int(s.next()%9))
		held, text = held+text[:n], text[n:]
		whole := wholeRunes(held)
		if text == "" {
			whole = len(held)
		}
		if whole == 0 && !(first && d.Name != "") {
			continue
		}
		if limit >= 0 && s.sent >= limit {
			return nil
		}
		if err := s.sleep(s.m.opts.Pace); err != nil {
			return err
		}
		d.Text, held = strings.ToValidUTF8(held[:whole], "�"), held[whole:]
		s.sink(d)
		s.sent++
		d.Name, d.ID = "", ""
	}
	return nil
}

// wholeRunes is the length of the part of s that does not end inside a character.
func wholeRunes(s string) int {
	for i := len(s) - 1; i >= 0 && i >= len(s)-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return i
			}
			break
		}
	}
	return len(s)
}

// next is a step of the splitmix64 generator: no global source, the same cuts for the same attempt.
func (s *stream) next() uint64 {
	s.rnd += 0x9e3779b97f4a7c15
	z := s.rnd
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) sleep(d time.Duration) error {
	if err := s.ctx.Err(); err != nil {
		return stopped(context.Cause(s.ctx))
	}
	if s.m.opts.Sleep == nil || d <= 0 {
		return nil
	}
	if err := s.m.opts.Sleep(s.ctx, d); err != nil {
		return stopped(err)
	}
	return nil
}
