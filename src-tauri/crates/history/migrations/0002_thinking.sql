-- What an answer needs to be ended early in its thought and to go on later. Rows of before know none of it.

-- The most tokens a thought may take; NULL: as many as it wants.
ALTER TABLE chats ADD COLUMN thinking_budget INTEGER;
-- The budget that the answer was asked with.
ALTER TABLE messages ADD COLUMN thinking_budget INTEGER;
-- How many of the tokens are reasoning; known while the answer is being written, so also of one that was interrupted.
ALTER TABLE messages ADD COLUMN thinking_tokens INTEGER;
-- The rule that ended it, as JSON.
ALTER TABLE messages ADD COLUMN ended_by TEXT;
-- Set by another process that wants the owner to end the thought.
ALTER TABLE messages ADD COLUMN end_thinking_requested INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 2;
