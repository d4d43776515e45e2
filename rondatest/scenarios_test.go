package rondatest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ronda-go/ronda/rondatest"
)

// handed are scenarios that lie beside the project where it is developed.
const handed = "../../shared/scenarios/*.yaml"

func TestScenarios(t *testing.T) {
	t.Run("handed", func(t *testing.T) {
		if found, _ := filepath.Glob(handed); len(found) == 0 {
			t.Skip("no scenarios beside the project")
		}
		rondatest.Scenarios(t, handed)
	})
	t.Run("own", func(t *testing.T) {
		if _, err := os.Stat("../scenarios"); err != nil {
			t.Skip("no scenarios in this copy of the project")
		}
		rondatest.Scenarios(t, "../scenarios/*.yaml")
	})
}
