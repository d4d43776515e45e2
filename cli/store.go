package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
)

// dataFolder is where a user's data lives by the habit of the system.
func dataFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); runtime.GOOS != "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "ronda"), nil
	}
	if dir := os.Getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "ronda"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "ronda"), nil
	case "windows":
		return filepath.Join(home, "AppData", "Local", "ronda"), nil
	}
	return filepath.Join(home, ".local", "share", "ronda"), nil
}

// open opens the host on the store that the flags name.
func (c *command) open() (*ronda.Host, error) {
	if c.host != nil {
		return c.host, nil
	}
	u := c.storeURL
	if u == "" {
		dir, err := dataFolder()
		if err != nil {
			return nil, usagef("no folder for the store: %w. Give --store sqlite:///path.db", err)
		}
		u = filepath.Join(dir, "ronda.db")
	}
	store, err := ronda.OpenStore(u)
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, store.Close)
	h, err := ronda.OpenHost(drive.Options{Store: store, Stream: true, Tapes: true, AgentFor: c.agentFor, Agents: c.agentByName, Log: c.logger(), Hook: c.Hook})
	if err != nil {
		return nil, err
	}
	c.host = h
	return h, nil
}

// find resolves what a person calls a run: its id, a unique beginning or end of it, or "last".
func (c *command) find(ctx context.Context, h *ronda.Host, name string) (string, error) {
	if name == "last" {
		page, err := h.Store().List(ctx, journal.Query{Roots: true, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(page.Runs) == 0 {
			return "", usagef("there is no run yet. Start one with %s run AGENT INPUT", c.Name)
		}
		return page.Runs[0].ID, nil
	}
	if _, err := h.Store().Get(ctx, name); err == nil || !errors.Is(err, journal.ErrNotFound) {
		return name, err
	}
	page, err := h.Store().List(ctx, journal.Query{IDs: name, Limit: 10})
	if err != nil {
		return "", err
	}
	switch len(page.Runs) {
	case 1:
		return page.Runs[0].ID, nil
	case 0:
		return "", &exitError{ExitFailed, errors.New("run " + name + ": there is no such run in this store. " + c.Name + " runs lists them; --store names another store")}
	}
	ids := make([]string, len(page.Runs))
	for i, r := range page.Runs {
		ids[i] = r.ID
	}
	return "", usagef("run %s: several runs are called so: %s. Write more of the id", name, strings.Join(ids, ", "))
}
