// Command table turns the lines of contenders into medians: go run ./table FILE
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type line struct {
	Label        string
	Rounds, Runs float64
	CPU          float64 `json:"cpu_s"`
	Wall         float64 `json:"wall_s"`
	Peak         float64 `json:"peak_rss"`
	Bytes        float64
	BytesPaused  float64 `json:"bytes_paused"`
	HeapPaused   float64 `json:"heap_per_paused"`
	Mode         string
}

func main() {
	f, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer f.Close()
	groups := map[string][]line{}
	var order []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var l line
		if json.Unmarshal(sc.Bytes(), &l) != nil || l.Label == "" {
			continue
		}
		if groups[l.Label] == nil {
			order = append(order, l.Label)
		}
		groups[l.Label] = append(groups[l.Label], l)
	}
	fmt.Println("| contender | CPU µs a round | × spliced floor | runs/s | runs per CPU second | peak MiB | bytes a round |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, label := range order {
		g := groups[label]
		perRound := median(g, func(l line) float64 { return l.CPU * 1e6 / l.Rounds / l.Runs })
		ratio := "–"
		if i := strings.LastIndex(label, " r"); i >= 0 {
			if floor := groups["splice"+label[i:]]; floor != nil {
				ratio = fmt.Sprintf("%.2f", perRound/median(floor, func(l line) float64 { return l.CPU * 1e6 / l.Rounds / l.Runs }))
			}
		}
		bytes := "–"
		if g[0].Bytes > 0 {
			bytes = fmt.Sprintf("%.0f", median(g, func(l line) float64 { return l.Bytes / l.Rounds / l.Runs }))
		}
		if g[0].Mode == "pause" {
			fmt.Printf("| %s: resume to end %.0f µs CPU, %.0f B stored and %.0f B of heap each while paused | | | | | %.0f | |\n", label,
				median(g, func(l line) float64 { return l.CPU * 1e6 / l.Runs }), median(g, func(l line) float64 { return l.BytesPaused / l.Runs }),
				median(g, func(l line) float64 { return l.HeapPaused }), median(g, func(l line) float64 { return l.Peak / (1 << 20) }))
			continue
		}
		fmt.Printf("| %s | %.0f | %s | %.0f | %.0f | %.0f | %s |\n", label, perRound, ratio, median(g, func(l line) float64 { return l.Runs / l.Wall }),
			median(g, func(l line) float64 { return l.Runs / l.CPU }), median(g, func(l line) float64 { return l.Peak / (1 << 20) }), bytes)
	}
}

func median(g []line, f func(line) float64) float64 {
	v := make([]float64, len(g))
	for i, l := range g {
		v[i] = f(l)
	}
	slices.Sort(v)
	return v[len(v)/2]
}
