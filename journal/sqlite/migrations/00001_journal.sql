-- Payloads live in ordinary tables with unique indexes beside them: rows of this size in WITHOUT ROWID tables cost several
-- times the space and the time. Runs have small integer keys of the store's own, so that no other table repeats their names.

-- +goose Up
CREATE TABLE runs (
    id      INTEGER PRIMARY KEY,
    run     TEXT NOT NULL,
    session TEXT,                   -- NULL: none
    parent  TEXT,                   -- NULL: a root
    root    TEXT,                   -- NULL: its own root
    agent   TEXT NOT NULL,
    model   TEXT NOT NULL,
    status  TEXT NOT NULL,
    live    INTEGER NOT NULL,       -- 0: stopped; apart from status so that appends leave the indexes on it alone
    waiting TEXT,                   -- JSON array
    stop    TEXT,
    lim     TEXT,
    created INTEGER NOT NULL,       -- microseconds, as all times
    updated INTEGER NOT NULL,
    wake    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    digest  TEXT NOT NULL,
    inputs  INTEGER NOT NULL DEFAULT 0,
    title   TEXT NOT NULL,
    summary BLOB,
    owner   TEXT,                   -- of the lease; NULL: free
    place   TEXT,                   -- the lock file of the store that took the lease
    epoch   INTEGER NOT NULL
);
CREATE UNIQUE INDEX runs_run ON runs (run);
CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_live ON runs (created) WHERE live = 1;
CREATE INDEX runs_session ON runs (session) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX runs_live_root ON runs (session) WHERE live = 1 AND parent IS NULL AND session IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_root ON runs (root) WHERE root IS NOT NULL;
CREATE INDEX runs_wake ON runs (wake) WHERE wake > 0;
CREATE INDEX runs_inputs ON runs (created) WHERE inputs > 0;

-- The events of one moment share a row; seq is that of the last. Rows are only ever added at the end.
CREATE TABLE batches (
    id   INTEGER PRIMARY KEY,
    run  INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX batches_run ON batches (run, seq);

CREATE TABLE tapes (
    id   INTEGER PRIMARY KEY,
    run  INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX tapes_run ON tapes (run, name);

CREATE TABLE artifacts (
    id   INTEGER PRIMARY KEY,
    ref  BLOB NOT NULL,             -- the 32 bytes of the digest
    mime TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX artifacts_ref ON artifacts (ref);

CREATE TABLE inputs (
    id    INTEGER PRIMARY KEY,      -- in the order of acceptance
    run   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    key   TEXT,                     -- NULL: none
    kind  TEXT NOT NULL,
    by    TEXT NOT NULL,
    at    INTEGER NOT NULL,
    body  BLOB,
    taken INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX inputs_name ON inputs (run, name);
CREATE UNIQUE INDEX inputs_key ON inputs (run, key) WHERE key IS NOT NULL;
CREATE INDEX inputs_waiting ON inputs (run) WHERE taken = 0;

CREATE TABLE docs (
    id    INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    name  TEXT NOT NULL,
    doc   BLOB
);
CREATE UNIQUE INDEX docs_name ON docs (space, name);

CREATE TABLE keys (
    id    INTEGER PRIMARY KEY,
    key   TEXT NOT NULL,
    value TEXT NOT NULL
);
CREATE UNIQUE INDEX keys_key ON keys (key);

PRAGMA application_id = 1380929092; -- "ROND"
PRAGMA user_version = 1;
