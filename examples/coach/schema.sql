-- Weights are in grams, body measurements in thousandths of their unit, so that sums and comparisons are exact.

CREATE TABLE exercises (
    id        TEXT PRIMARY KEY,
    name_en   TEXT NOT NULL UNIQUE,
    name_es   TEXT NOT NULL UNIQUE,
    muscle    TEXT NOT NULL,
    equipment TEXT NOT NULL
) STRICT;

-- Other names of exercises, in lower case without accents.
CREATE TABLE exercise_words (
    word     TEXT NOT NULL,
    exercise TEXT NOT NULL REFERENCES exercises (id),
    PRIMARY KEY (word, exercise)
) STRICT, WITHOUT ROWID;

-- key is the idempotency key of the call that logged the workout; what came with the database has none.
CREATE TABLE workouts (
    id      INTEGER PRIMARY KEY,
    day     TEXT    NOT NULL CHECK (date(day) IS day),
    title   TEXT    NOT NULL,
    minutes INTEGER CHECK (minutes BETWEEN 1 AND 600),
    note    TEXT    NOT NULL DEFAULT '',
    deload  INTEGER NOT NULL DEFAULT 0 CHECK (deload IN (0, 1)),
    run     TEXT,
    key     TEXT UNIQUE,
    CHECK ((run IS NULL) = (key IS NULL))
) STRICT;

CREATE INDEX workouts_by_day ON workouts (day);

CREATE TABLE sets (
    workout  INTEGER NOT NULL REFERENCES workouts (id),
    n        INTEGER NOT NULL,
    exercise TEXT    NOT NULL REFERENCES exercises (id),
    kind     TEXT    NOT NULL CHECK (kind IN ('warmup', 'work')),
    weight_g INTEGER NOT NULL CHECK (weight_g BETWEEN 0 AND 500000), -- 0: the body's own weight
    reps     INTEGER NOT NULL CHECK (reps BETWEEN 1 AND 100),
    rpe10    INTEGER CHECK (rpe10 BETWEEN 10 AND 100), -- rate of perceived exertion, in tenths
    PRIMARY KEY (workout, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX sets_by_exercise ON sets (exercise, workout);

-- Planned sessions that did not happen.
CREATE TABLE missed (
    day    TEXT PRIMARY KEY CHECK (date(day) IS day),
    title  TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

-- Longer times in which training was different.
CREATE TABLE spells (
    first TEXT NOT NULL CHECK (date(first) IS first),
    last  TEXT NOT NULL CHECK (date(last) IS last),
    kind  TEXT NOT NULL CHECK (kind IN ('injury', 'illness', 'holiday')),
    note  TEXT NOT NULL,
    PRIMARY KEY (first, kind),
    CHECK (last >= first)
) STRICT;

-- Each time that the estimated one-repetition maximum of an exercise (Epley) was higher than ever before.
CREATE TABLE records (
    exercise   TEXT    NOT NULL REFERENCES exercises (id),
    workout    INTEGER NOT NULL REFERENCES workouts (id),
    day        TEXT    NOT NULL,
    weight_g   INTEGER NOT NULL,
    reps       INTEGER NOT NULL,
    estimate_g INTEGER NOT NULL,
    PRIMARY KEY (exercise, workout)
) STRICT, WITHOUT ROWID;

-- Of several values of one kind and day the last one holds.
CREATE TABLE measurements (
    id    INTEGER PRIMARY KEY,
    day   TEXT    NOT NULL CHECK (date(day) IS day),
    kind  TEXT    NOT NULL CHECK (kind IN ('body_weight', 'waist', 'body_fat')),
    value INTEGER NOT NULL CHECK (value > 0),
    run   TEXT,
    key   TEXT UNIQUE,
    CHECK ((run IS NULL) = (key IS NULL))
) STRICT;

CREATE INDEX measurements_by_kind ON measurements (kind, day);

CREATE TABLE goals (
    id       INTEGER PRIMARY KEY,
    set_on   TEXT    NOT NULL CHECK (date(set_on) IS set_on),
    kind     TEXT    NOT NULL CHECK (kind IN ('one_rep_max', 'body_weight')),
    exercise TEXT REFERENCES exercises (id),
    target_g INTEGER NOT NULL CHECK (target_g > 0),
    by_day   TEXT    NOT NULL CHECK (date(by_day) IS by_day),
    note     TEXT    NOT NULL DEFAULT '',
    status   TEXT    NOT NULL CHECK (status IN ('open', 'reached', 'missed', 'replaced')),
    replaces INTEGER REFERENCES goals (id), -- the goal that was open for the same thing
    run      TEXT,
    key      TEXT UNIQUE,
    CHECK ((exercise IS NOT NULL) = (kind = 'one_rep_max')),
    CHECK (by_day >= set_on),
    CHECK ((run IS NULL) = (key IS NULL))
) STRICT;

-- One open goal for each thing that can be aimed at.
CREATE UNIQUE INDEX goals_open ON goals (kind, coalesce(exercise, '')) WHERE status = 'open';
