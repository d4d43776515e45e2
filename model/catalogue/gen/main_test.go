package main

import (
	"bytes"
	"os"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

func TestTableIsCurrent(t *testing.T) {
	have, err := os.ReadFile("../catalogue.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if want := table(embedded.GetAll()); !bytes.Equal(have, want) {
		t.Fatal("catalogue.tsv is not what the library says: run go generate ./model/catalogue")
	}
}

func TestPrices(t *testing.T) {
	for _, c := range []struct {
		name                 string
		in, out, first, last float64
		want                 [4]int64 // input, read, write, output
	}{
		{"write and read", 3, 15, 3.75, 0.3, [4]int64{3_000_000, 300_000, 3_750_000, 15_000_000}},
		{"read only", 2, 8, 0, 0.5, [4]int64{2_000_000, 500_000, 2_000_000, 8_000_000}},
		{"read in the field of the write", 5, 30, 0.5, 0, [4]int64{5_000_000, 500_000, 5_000_000, 30_000_000}},
		{"output in the field of the read", 0.75, 3.75, 0.075, 3.75, [4]int64{750_000, 75_000, 750_000, 3_750_000}},
		{"binary fraction", 0.39999999999999997, 1.5999999999999999, 0, 0.09999999999999999, [4]int64{400_000, 100_000, 400_000, 1_600_000}},
		{"small", 0.14, 0.28, 0.0028, 0, [4]int64{140_000, 2_800, 140_000, 280_000}},
	} {
		in, read, write, out := prices(catwalk.Model{CostPer1MIn: c.in, CostPer1MOut: c.out, CostPer1MInCached: c.first, CostPer1MOutCached: c.last})
		if got := [4]int64{in, read, write, out}; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
