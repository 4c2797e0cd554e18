-- Parts that are cut out of chats, where a model's memory begins, and what windows beside each other need to stay right.

-- Grows with every change of what a window draws of the chat, drafts left out, so that a window sees that it shows an old state.
ALTER TABLE chats ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
-- Whether an answer ended in it that no window has shown since.
ALTER TABLE chats ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
-- Where it was scrolled to, as JSON; NULL: its end.
ALTER TABLE chats ADD COLUMN scroll_place TEXT;
-- Messages that were deleted out of a chat lie in the trash as a chat of their own. Where they were, as JSON.
ALTER TABLE chats ADD COLUMN cut_from TEXT;

-- The model remembers nothing up to and including this message; as JSON, with the summary that stands in its place. NULL: it does.
ALTER TABLE messages ADD COLUMN memory_cut TEXT;
-- Whether a person wrote this answer over a model's.
ALTER TABLE messages ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    UPDATE chats SET revision = revision + 1 WHERE id = NEW.chat_id;
END;
CREATE TRIGGER messages_changed AFTER UPDATE OF chat_id, parent_id, state, memory_cut ON messages BEGIN
    UPDATE chats SET revision = revision + 1 WHERE id IN (OLD.chat_id, NEW.chat_id);
END;
CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
    UPDATE chats SET revision = revision + 1 WHERE id = OLD.chat_id;
END;
CREATE TRIGGER chats_changed AFTER UPDATE OF head, settings ON chats WHEN OLD.head IS NOT NEW.head OR OLD.settings <> NEW.settings BEGIN
    UPDATE chats SET revision = revision + 1 WHERE id = NEW.id;
END;

PRAGMA user_version = 6;
