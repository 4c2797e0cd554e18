-- The index of collections. All of it but `collections` can be made anew from the documents.

CREATE TABLE collections (
    id         TEXT    PRIMARY KEY NOT NULL,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('folder', 'files')),
    -- Paths as the system has them, which need not be text, with a NUL after each.
    paths      BLOB    NOT NULL,
    -- As JSON.
    rules      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    -- The time when its folder was last looked through.
    synced_at  INTEGER,
    -- The number of files that were left out then, by reason, as JSON.
    left_out   TEXT    NOT NULL DEFAULT '{}',
    -- 1 if its files are not read until the person says so.
    is_paused  INTEGER NOT NULL DEFAULT 0 CHECK (is_paused IN (0, 1))
) STRICT;

CREATE TABLE files (
    id         INTEGER PRIMARY KEY NOT NULL,
    collection TEXT    NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    path       BLOB    NOT NULL,
    size       INTEGER NOT NULL,
    -- Unix nanoseconds; 0: not known.
    modified   INTEGER NOT NULL,
    -- Of the bytes that were read.
    hash       BLOB,
    -- How its passages were made. Others are made anew.
    recipe     TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'read', 'failed', 'skipped')),
    -- The reason of a file that failed or was skipped.
    reason     TEXT,
    -- The number of its passages, and the bytes of its text.
    passages   INTEGER NOT NULL DEFAULT 0,
    text_bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (collection, path)
) STRICT;

CREATE TABLE passages (
    -- Never used twice, because vectors in memory go by it.
    id         INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    file       INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    headings   TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    page       INTEGER,
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL,
    -- The place in the text of the file, in bytes.
    start_byte INTEGER NOT NULL,
    end_byte   INTEGER NOT NULL
) STRICT;
CREATE INDEX passages_by_file ON passages (file);

CREATE TABLE vectors (
    passage    INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    model      TEXT    NOT NULL,
    dimensions INTEGER NOT NULL,
    vector     BLOB    NOT NULL,
    PRIMARY KEY (model, passage)
) STRICT, WITHOUT ROWID;
CREATE INDEX vectors_by_passage ON vectors (passage);

-- The texts stand in `passages` already. Headings follow the name of the file. Porter's rules take the endings off
-- English words.
CREATE VIRTUAL TABLE words USING fts5 (
    headings, text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER gone_passage AFTER DELETE ON passages BEGIN
    DELETE FROM words WHERE rowid = old.id;
END;

-- A number that grows with every transaction that writes, so that what is in memory is known to be of now.
CREATE TABLE generation (number INTEGER NOT NULL) STRICT;
INSERT INTO generation VALUES (0);

PRAGMA user_version = 1;
