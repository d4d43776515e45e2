package recording

import (
	"slices"
	"sort"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// PlayerOptions say how a player begins.
type PlayerOptions struct {
	Speed   float64     `json:"speed,omitempty"`    // 0: 1
	MaxWait loop.Micros `json:"max_wait,omitempty"` // longer waits are cut to this; 0: 2 s, negative: none is cut
	Step    bool        `json:"step,omitempty"`     // stop after each event
}

// DefaultMaxWait is what is left of a longer wait.
const DefaultMaxWait = 2 * loop.Second

// Speeds are the steps of the keys for slower and faster.
var Speeds = []float64{0.25, 0.5, 1, 2, 4, 8, 16, 32, 64}

// Player plays the items of a timeline. It has no clock: each call is told the time, in microseconds of any clock that does not go back. It
// belongs to one goroutine. The vectors in testdata/player say what it does; players in other languages must agree with them.
type Player struct {
	items  []Item
	opts   PlayerOptions
	at     []loop.Micros // of each item on the line of what is played
	cut    []loop.Micros // of the wait before each item
	rounds []int         // items that begin a round

	pos      loop.Micros // on the line, at the time since
	since    loop.Micros
	playing  bool
	speed    float64
	shown    int
	screen   screen
	expanded bool
	help     bool
	typing   bool
	query    string
	missed   bool // the last search found nothing
	texts    []string
}

// NewPlayer makes a player that stands at the beginning and plays.
func NewPlayer(items []Item, o PlayerOptions, now loop.Micros) *Player {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	if o.MaxWait == 0 {
		o.MaxWait = DefaultMaxWait
	}
	p := &Player{items: items, opts: o, speed: o.Speed, since: now, playing: !o.Step}
	var line, last loop.Micros
	for i, it := range items {
		gap := it.At - last
		if i == 0 {
			gap = 0
		}
		left := gap
		if o.MaxWait > 0 && gap > o.MaxWait {
			left = o.MaxWait
		}
		line += left
		p.at, p.cut = append(p.at, line), append(p.cut, gap-left)
		last = it.At
		if b, ok := it.Event.Body.(loop.ModelCallStarted); ok && b.Attempt <= 1 {
			p.rounds = append(p.rounds, i)
		}
	}
	p.show(now)
	return p
}

// Total is the length of what is played: the recording with its long waits cut.
func (p *Player) Total() loop.Micros {
	if len(p.at) == 0 {
		return 0
	}
	return p.at[len(p.at)-1]
}

// position is where the player is at a time.
func (p *Player) position(now loop.Micros) loop.Micros {
	if !p.playing {
		return p.pos
	}
	return min(p.pos+loop.Micros(float64(now-p.since)*p.speed), p.Total())
}

// show brings the screen to the position.
func (p *Player) show(now loop.Micros) {
	p.pos, p.since = p.position(now), now
	n := sort.Search(len(p.at), func(i int) bool { return p.at[i] > p.pos })
	if !p.playing && p.shown > 0 && p.shown <= n && p.shown < len(p.at) && p.at[p.shown-1] == p.pos {
		n = p.shown // a step stops within items of one moment
	}
	p.upto(n)
	if p.playing && p.shown == len(p.items) {
		p.playing = false
	}
}

// upto shows the first n items.
func (p *Player) upto(n int) {
	if n < p.shown {
		p.screen, p.shown = screen{}, 0
	}
	for ; p.shown < n; p.shown++ {
		p.screen.apply(p.items[p.shown], p.cut[p.shown])
	}
}

// Tick tells the player the time.
func (p *Player) Tick(now loop.Micros) { p.show(now) }

// Next is when the next item is due, false while nothing will come by itself.
func (p *Player) Next(now loop.Micros) (loop.Micros, bool) {
	if !p.playing || p.shown >= len(p.items) {
		return 0, false
	}
	left := p.at[p.shown] - p.position(now)
	return now + max(loop.Micros(float64(left)/p.speed), 0), true
}

// Key is a key that was pressed: a character, or left, right, space, enter, escape, backspace. It says whether the key means anything.
func (p *Player) Key(now loop.Micros, key string) bool {
	p.show(now)
	if p.typing {
		return p.typed(key)
	}
	switch key {
	case "space", " ":
		switch {
		case p.opts.Step:
			p.event(1)
		case p.playing:
			p.playing = false
		default:
			if p.shown == len(p.items) {
				p.seek(0)
			}
			p.playing = true
		}
	case "right":
		p.event(1)
	case "left":
		p.event(-1)
	case "]":
		p.round(1)
	case "[":
		p.round(-1)
	case ".":
		p.faster(1)
	case ",":
		p.faster(-1)
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		p.seek(p.Total() * loop.Micros(key[0]-'0') / 10)
	case "/":
		p.typing, p.query, p.missed = true, "", false
	case "n":
		p.find(p.shown, 1)
	case "N":
		p.find(p.shown-2, -1)
	case "e":
		p.expanded = !p.expanded
	case "?":
		p.help = !p.help
	case "escape":
		p.help, p.query, p.missed = false, "", false
	default:
		return false
	}
	return true
}

func (p *Player) typed(key string) bool {
	switch key {
	case "enter":
		p.typing = false
		p.find(p.shown, 1)
	case "escape":
		p.typing, p.query = false, ""
	case "backspace":
		r := []rune(p.query)
		p.query = string(r[:max(len(r)-1, 0)])
	case "space":
		p.query += " "
	default:
		if len([]rune(key)) != 1 {
			return false
		}
		p.query += key
	}
	return true
}

// seek goes to a position on the line.
func (p *Player) seek(pos loop.Micros) {
	p.pos = max(min(pos, p.Total()), 0)
	p.upto(sort.Search(len(p.at), func(i int) bool { return p.at[i] > p.pos }))
}

// jump shows everything up to an item and stops there.
func (p *Player) jump(i int) {
	p.playing = false
	p.pos = p.at[i]
	p.upto(i + 1)
}

// event goes to the next event, or the one before.
func (p *Player) event(by int) {
	p.playing = false
	i := p.shown - 1
	for i += by; i >= 0 && i < len(p.items); i += by {
		if p.items[i].Offset == 0 {
			p.jump(i)
			return
		}
	}
}

// End shows everything and stops.
func (p *Player) End() {
	if len(p.items) > 0 {
		p.jump(len(p.items) - 1)
	}
}

// round goes to the beginning of the next round, or of the one before.
func (p *Player) round(by int) {
	cur := p.shown - 1
	if by > 0 {
		for _, i := range p.rounds {
			if i > cur {
				p.jump(i)
				return
			}
		}
		p.End()
		return
	}
	for _, i := range slices.Backward(p.rounds) {
		if i < cur {
			p.jump(i)
			return
		}
	}
	if len(p.items) > 0 {
		p.jump(0)
	}
}

func (p *Player) faster(by int) {
	i := 0
	for i < len(Speeds)-1 && Speeds[i] < p.speed {
		i++
	}
	p.speed = Speeds[max(min(i+by, len(Speeds)-1), 0)]
}

// find goes to the next item, from one on, whose text holds what is searched for; case does not matter.
func (p *Player) find(from, by int) {
	q := strings.ToLower(p.query)
	if q == "" {
		return
	}
	for i := from; i >= 0 && i < len(p.items); i += by {
		if strings.Contains(p.text(i), q) {
			p.missed = false
			p.jump(i)
			return
		}
	}
	p.missed = true
}

// text is what a search looks at: the whole body of an event. Pieces are found in their message.
func (p *Player) text(i int) string {
	if p.texts == nil {
		p.texts = make([]string, len(p.items))
	}
	if p.texts[i] == "" && p.items[i].Offset == 0 {
		p.texts[i] = "\x00"
		if b, err := marshal(p.items[i].Event.Body); err == nil {
			p.texts[i] = strings.ToLower(p.items[i].Event.Kind() + " " + string(b))
		}
	}
	return p.texts[i]
}

// Waiting is a wait that is being played.
type Waiting struct {
	Cause string      `json:"cause"`
	Cut   loop.Micros `json:"cut"` // of it is not played
}

// View is what a player shows.
type View struct {
	Pos      loop.Micros `json:"pos"`
	Total    loop.Micros `json:"total"`
	Real     loop.Micros `json:"real"` // time since the start of the run, nothing cut, of the last item
	Shown    int         `json:"shown"`
	Items    int         `json:"items"`
	Event    int64       `json:"event"` // the last one shown
	Round    int         `json:"round"` // model calls begun
	Playing  bool        `json:"playing"`
	Speed    float64     `json:"speed"`
	Wait     *Waiting    `json:"wait,omitempty"`
	Expanded bool        `json:"expanded,omitempty"`
	Help     bool        `json:"help,omitempty"`
	Typing   bool        `json:"typing,omitempty"`
	Query    string      `json:"query,omitempty"`
	Missed   bool        `json:"missed,omitempty"`
	Blocks   []Block     `json:"blocks"`
}

// View is what is shown at the last time that the player was told.
func (p *Player) View() View {
	v := View{Pos: p.pos, Total: p.Total(), Shown: p.shown, Items: len(p.items), Playing: p.playing, Speed: p.speed, Expanded: p.expanded, Help: p.help,
		Typing: p.typing, Query: p.query, Missed: p.missed, Blocks: slices.Clone(p.screen.blocks)}
	if p.shown > 0 {
		v.Real = p.items[p.shown-1].At
	}
	for i := p.shown - 1; i >= 0; i-- {
		if p.items[i].Offset == 0 {
			v.Event = p.items[i].Seq
			break
		}
	}
	v.Round = sort.SearchInts(p.rounds, p.shown)
	if p.shown < len(p.items) && p.cut[p.shown] > 0 {
		v.Wait = &Waiting{p.items[p.shown].Wait, p.cut[p.shown]}
	}
	if p.expanded {
		for i := range v.Blocks {
			v.Blocks[i].Folded = false
		}
	}
	return v
}

// Mark is a place on the time line.
type Mark struct {
	At   loop.Micros `json:"at"`   // on the line of what is played
	Kind string      `json:"kind"` // round, tool, approval, stop, wait
	Seq  int64       `json:"seq"`
	Cut  loop.Micros `json:"cut,omitempty"`
	Why  string      `json:"why,omitempty"` // wait: its cause
}

// Marks are the places on the time line: where rounds begin, tools run, approvals are asked for and given, runs stop, and waits are cut.
func (p *Player) Marks() []Mark {
	var out []Mark
	for i, it := range p.items {
		if p.cut[i] > 0 {
			out = append(out, Mark{At: p.at[i], Kind: "wait", Seq: it.Seq, Cut: p.cut[i], Why: it.Wait})
		}
		kind := ""
		switch b := it.Event.Body.(type) {
		case loop.ModelCallStarted:
			if b.Attempt <= 1 {
				kind = "round"
			}
		case loop.ToolStarted, loop.ChildStarted:
			kind = "tool"
		case loop.ApprovalAsked, loop.ApprovalDecided:
			kind = "approval"
		case loop.RunStopped:
			kind = "stop"
		}
		if kind != "" {
			out = append(out, Mark{At: p.at[i], Kind: kind, Seq: it.Seq})
		}
	}
	return out
}
