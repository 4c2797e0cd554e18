-- Times are Unix milliseconds. Ids are UUIDv7 in text form, so they sort by age.

CREATE TABLE chats (
    id            TEXT    PRIMARY KEY NOT NULL,
    title         TEXT    NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    pinned        INTEGER NOT NULL DEFAULT 0,
    -- Set while the chat lies in the trash; it can be brought back until it is purged.
    deleted_at    INTEGER,
    -- The last message of the branch that is looked at.
    head          TEXT    REFERENCES messages (id) ON DELETE SET NULL,
    draft         TEXT    NOT NULL DEFAULT '',
    model         TEXT,
    thinking      TEXT,
    system_prompt TEXT    NOT NULL DEFAULT '',
    sampling      TEXT    NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX chats_by_age ON chats (deleted_at, updated_at);
-- Lets the foreign key find the chat of a deleted message without a scan.
CREATE INDEX chats_by_head ON chats (head);

-- A tree: an edited question or a regenerated answer is a sibling, nothing is overwritten.
CREATE TABLE messages (
    id             TEXT    PRIMARY KEY NOT NULL,
    chat_id        TEXT    NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    -- No cascade here: it would recurse once per message of a long chat. A subtree is deleted by one statement.
    parent_id      TEXT    REFERENCES messages (id),
    role           TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    state          TEXT    NOT NULL CHECK (state IN ('streaming', 'complete', 'stopped', 'failed', 'interrupted')),
    created_at     INTEGER NOT NULL,
    finished_at    INTEGER,
    model          TEXT,
    model_revision TEXT,
    template_hash  TEXT,
    thinking       TEXT,
    -- The generated token ids, four bytes each, little-endian: what continuing starts from.
    tokens         BLOB    NOT NULL DEFAULT x'',
    stop           TEXT,
    error_code     TEXT,
    error_message  TEXT,
    notices        TEXT    NOT NULL DEFAULT '[]',
    usage          TEXT,
    timing         TEXT,
    -- The process that writes a streaming answer, and when it last said that it lives.
    owner          TEXT,
    heartbeat      INTEGER,
    -- Set by another process that wants the owner to stop.
    stop_requested INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX messages_by_chat ON messages (chat_id);
CREATE INDEX messages_by_parent ON messages (parent_id, chat_id, created_at);
-- A chat has one running answer at most, whichever process began it.
CREATE UNIQUE INDEX messages_streaming ON messages (chat_id) WHERE state = 'streaming';

CREATE TABLE parts (
    message_id TEXT    NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('thinking', 'text', 'tool_call')),
    -- Text of a thought or an answer; JSON of a tool call.
    content    TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    PRIMARY KEY (message_id, position)
) STRICT, WITHOUT ROWID;

-- What is not of one chat: the default model and the like. Values are JSON.
CREATE TABLE settings (
    key   TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Part of the same transaction as the tables, so that two processes that open a new file never both create them.
PRAGMA user_version = 1;
