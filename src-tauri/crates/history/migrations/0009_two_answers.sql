-- Two answers to one question may be written at once: the second says that it stands beside the first.
ALTER TABLE messages ADD COLUMN beside INTEGER NOT NULL DEFAULT 0 CHECK (beside IN (0, 1));

DROP INDEX messages_streaming;
CREATE UNIQUE INDEX messages_streaming ON messages (chat_id, beside) WHERE state = 'streaming';

PRAGMA user_version = 9;
