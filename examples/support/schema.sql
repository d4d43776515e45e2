CREATE TABLE customers (
    id       TEXT PRIMARY KEY,
    name     TEXT NOT NULL,
    email    TEXT NOT NULL UNIQUE COLLATE NOCASE,
    language TEXT NOT NULL CHECK (language IN ('en', 'es')),
    country  TEXT NOT NULL,
    since    TEXT NOT NULL CHECK (date(since) IS since)
) STRICT;

CREATE TABLE orders (
    id             TEXT PRIMARY KEY,
    customer       TEXT NOT NULL REFERENCES customers (id),
    placed         TEXT NOT NULL CHECK (date(placed) IS placed),
    promised       TEXT NOT NULL CHECK (date(promised) IS promised),
    shipped        TEXT CHECK (date(shipped) IS shipped),
    delivered      TEXT CHECK (date(delivered) IS delivered),
    currency       TEXT NOT NULL CHECK (currency IN ('EUR', 'GBP')),
    shipping_cents INTEGER NOT NULL CHECK (shipping_cents >= 0),
    payment        TEXT NOT NULL
) STRICT;

CREATE TABLE order_items (
    order_id    TEXT    NOT NULL REFERENCES orders (id),
    line        INTEGER NOT NULL,
    sku         TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    quantity    INTEGER NOT NULL CHECK (quantity > 0),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    PRIMARY KEY (order_id, line)
) STRICT;

-- What our own systems know of an order: payments, the warehouse, the carrier.
CREATE TABLE order_facts (
    order_id TEXT    NOT NULL REFERENCES orders (id),
    n        INTEGER NOT NULL,
    day      TEXT    NOT NULL CHECK (date(day) IS day),
    fact     TEXT    NOT NULL,
    PRIMARY KEY (order_id, n)
) STRICT;

CREATE TABLE cases (
    id       INTEGER PRIMARY KEY,
    customer TEXT NOT NULL REFERENCES customers (id),
    order_id TEXT REFERENCES orders (id),
    opened   TEXT NOT NULL CHECK (date(opened) IS opened),
    closed   TEXT CHECK (date(closed) IS closed),
    channel  TEXT NOT NULL CHECK (channel IN ('email', 'form', 'chat')),
    language TEXT NOT NULL CHECK (language IN ('en', 'es')),
    topic    TEXT NOT NULL,
    subject  TEXT NOT NULL,
    status   TEXT NOT NULL CHECK (status IN ('open', 'answered', 'closed')),
    CHECK ((status = 'closed') = (closed IS NOT NULL)),
    CHECK (closed IS NULL OR closed >= opened)
) STRICT;

-- Cases that were moved out of this database: only the number and the day are left.
CREATE TABLE archived_cases (
    id    INTEGER PRIMARY KEY,
    moved TEXT NOT NULL CHECK (date(moved) IS moved)
) STRICT;

CREATE TABLE case_links (
    case_id INTEGER NOT NULL REFERENCES cases (id),
    other   INTEGER NOT NULL, -- a case or an archived one
    reason  TEXT    NOT NULL,
    PRIMARY KEY (case_id, other)
) STRICT;

CREATE TABLE messages (
    case_id INTEGER NOT NULL REFERENCES cases (id),
    n       INTEGER NOT NULL,
    day     TEXT    NOT NULL CHECK (date(day) IS day),
    author  TEXT    NOT NULL CHECK (author IN ('customer', 'staff')),
    body    TEXT    NOT NULL,
    PRIMARY KEY (case_id, n)
) STRICT;

CREATE VIRTUAL TABLE case_words USING fts5 (subject, topic, body, tokenize = "unicode61 remove_diacritics 2");

CREATE TABLE policies (
    id     TEXT PRIMARY KEY,
    topic  TEXT    NOT NULL UNIQUE,
    linked INTEGER NOT NULL CHECK (linked >= 0) -- how many of the case's linked cases a reply must name
) STRICT;

CREATE TABLE policy_words (
    policy TEXT NOT NULL REFERENCES policies (id),
    word   TEXT NOT NULL,
    PRIMARY KEY (policy, word)
) STRICT, WITHOUT ROWID;

CREATE TABLE policy_versions (
    policy     TEXT    NOT NULL REFERENCES policies (id),
    version    INTEGER NOT NULL CHECK (version > 0),
    valid_from TEXT    NOT NULL CHECK (date(valid_from) IS valid_from),
    valid_to   TEXT CHECK (date(valid_to) IS valid_to), -- the last day; NULL: in force until replaced
    PRIMARY KEY (policy, version),
    CHECK (valid_to IS NULL OR valid_to >= valid_from)
) STRICT;

CREATE TABLE policy_texts (
    policy   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    language TEXT    NOT NULL CHECK (language IN ('en', 'es')),
    title    TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    PRIMARY KEY (policy, version, language),
    FOREIGN KEY (policy, version) REFERENCES policy_versions (policy, version)
) STRICT;

-- A draft's id comes from its content, so the same draft is one row however often it is written.
CREATE TABLE drafts (
    id             TEXT PRIMARY KEY,
    case_id        INTEGER NOT NULL REFERENCES cases (id),
    policy         TEXT    NOT NULL,
    policy_version INTEGER NOT NULL,
    recipient      TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    body           TEXT    NOT NULL,
    body_digest    TEXT    NOT NULL,
    run            TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    created_at     TEXT    NOT NULL,
    FOREIGN KEY (policy, policy_version) REFERENCES policy_versions (policy, version)
) STRICT;

CREATE TRIGGER drafts_stay BEFORE UPDATE ON drafts
BEGIN SELECT RAISE(ABORT, 'a draft is never changed: write another one'); END;

-- One row for each reply that left the house, by the idempotency key of the call that sent it.
CREATE TABLE sent (
    key         TEXT PRIMARY KEY,
    receipt     TEXT    NOT NULL UNIQUE,
    run         TEXT    NOT NULL,
    draft       TEXT    NOT NULL REFERENCES drafts (id),
    case_id     INTEGER NOT NULL REFERENCES cases (id),
    recipient   TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    body        TEXT    NOT NULL,
    body_digest TEXT    NOT NULL,
    sent_at     TEXT    NOT NULL,
    UNIQUE (run, draft)
) STRICT;

CREATE TRIGGER sent_stays BEFORE UPDATE ON sent
BEGIN SELECT RAISE(ABORT, 'what was sent is never changed'); END;

CREATE TRIGGER sent_is_kept BEFORE DELETE ON sent
BEGIN SELECT RAISE(ABORT, 'what was sent is never deleted'); END;
