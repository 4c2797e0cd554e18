-- Full-text search, the archive and folders.
--
-- A message, and the title of a chat, is one document. What changes a document's text marks it as stale in the same transaction;
-- stale documents are read into the index in small steps, and before a search. So a file that comes from an earlier version is
-- open at once, and a kill at any moment loses nothing of the index.

CREATE TABLE folders (
    id            TEXT    PRIMARY KEY NOT NULL,
    name          TEXT    NOT NULL,
    -- Instructions that stand before those of each chat in it.
    system_prompt TEXT    NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    -- Set while its deletion can be taken back; its chats stand outside of it meanwhile.
    deleted_at    INTEGER
) STRICT;

ALTER TABLE chats ADD COLUMN archived_at INTEGER;
ALTER TABLE chats ADD COLUMN folder_id TEXT REFERENCES folders (id) ON DELETE SET NULL;
CREATE INDEX chats_by_folder ON chats (folder_id) WHERE folder_id IS NOT NULL;

CREATE TABLE search_documents (
    -- When it was said, in milliseconds, times 2^20, and a count: so the order of the index is the order of time, and a span of time
    -- is a span of it.
    id         INTEGER PRIMARY KEY NOT NULL,
    chat_id    TEXT    NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    -- NULL: the title of the chat.
    message_id TEXT    UNIQUE REFERENCES messages (id) ON DELETE CASCADE,
    stale      INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX search_documents_by_chat ON search_documents (chat_id);
CREATE INDEX search_documents_stale ON search_documents (id) WHERE stale = 1;

-- The texts stand in `parts` already, so the index keeps none. Models are one token each.
CREATE VIRTUAL TABLE search_index USING fts5 (
    title, text, model,
    content = '', contentless_delete = 1, prefix = '1 2 3', tokenize = 'unicode61 remove_diacritics 2'
);

INSERT INTO search_documents (id, chat_id, message_id)
SELECT max(0, min(at, 8000000000000)) * 1048576
           + row_number() OVER (PARTITION BY max(0, min(at, 8000000000000)) ORDER BY place) - 1,
       chat_id, message_id
  FROM (SELECT created_at AS at, id AS chat_id, NULL AS message_id, 0 AS place FROM chats
        UNION ALL
        SELECT created_at, chat_id, id, rowid FROM messages);

CREATE TRIGGER search_new_chat AFTER INSERT ON chats BEGIN
    INSERT INTO search_documents (id, chat_id) VALUES (
        coalesce((SELECT id + 1 FROM search_documents
                   WHERE id BETWEEN max(0, min(new.created_at, 8000000000000)) * 1048576
                                AND max(0, min(new.created_at, 8000000000000)) * 1048576 + 1048574
                   ORDER BY id DESC LIMIT 1),
                 max(0, min(new.created_at, 8000000000000)) * 1048576),
        new.id);
END;

CREATE TRIGGER search_new_title AFTER UPDATE OF title ON chats WHEN new.title IS NOT old.title BEGIN
    UPDATE search_documents SET stale = 1 WHERE chat_id = new.id AND message_id IS NULL;
END;

CREATE TRIGGER search_new_message AFTER INSERT ON messages BEGIN
    INSERT INTO search_documents (id, chat_id, message_id) VALUES (
        coalesce((SELECT id + 1 FROM search_documents
                   WHERE id BETWEEN max(0, min(new.created_at, 8000000000000)) * 1048576
                                AND max(0, min(new.created_at, 8000000000000)) * 1048576 + 1048574
                   ORDER BY id DESC LIMIT 1),
                 max(0, min(new.created_at, 8000000000000)) * 1048576),
        new.chat_id, new.id);
    -- A question is found by the models that answered it.
    UPDATE search_documents SET stale = 1 WHERE message_id = new.parent_id AND new.role = 'assistant';
END;

-- What is deleted out of a chat lies in the trash in a chat of its own.
CREATE TRIGGER search_moved_message AFTER UPDATE OF chat_id ON messages BEGIN
    UPDATE search_documents SET chat_id = new.chat_id WHERE message_id = new.id;
END;

CREATE TRIGGER search_new_part AFTER INSERT ON parts WHEN new.kind <> 'thinking' BEGIN
    UPDATE search_documents SET stale = 1 WHERE message_id = new.message_id AND stale = 0;
END;

CREATE TRIGGER search_grown_part AFTER UPDATE OF content ON parts WHEN new.kind <> 'thinking' BEGIN
    UPDATE search_documents SET stale = 1 WHERE message_id = new.message_id AND stale = 0;
END;

CREATE TRIGGER search_gone_part AFTER DELETE ON parts WHEN old.kind <> 'thinking' BEGIN
    UPDATE search_documents SET stale = 1 WHERE message_id = old.message_id AND stale = 0;
END;

CREATE TRIGGER search_gone_document AFTER DELETE ON search_documents BEGIN
    DELETE FROM search_index WHERE rowid = old.id;
END;

PRAGMA user_version = 7;
