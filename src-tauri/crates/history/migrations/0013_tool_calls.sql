-- Calls of tools that Ponder runs: what became of each, and the tools that a chat began with.

-- What became of the calls of an answer, as JSON; NULL: nobody ran any.
ALTER TABLE messages ADD COLUMN tool_calls TEXT;
-- Whether one of them waits or runs, so that those of a process that died are found.
ALTER TABLE messages ADD COLUMN has_open_calls INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_with_open_calls ON messages (id) WHERE has_open_calls = 1;
-- The tools as the model was told of them first, as JSON, so that the beginning of the prompt stays the same.
ALTER TABLE chats ADD COLUMN offered_tools TEXT;

CREATE TRIGGER tool_calls_changed AFTER UPDATE OF tool_calls ON messages BEGIN
    UPDATE chats SET revision = revision + 1 WHERE id = NEW.chat_id;
END;

PRAGMA user_version = 13;
