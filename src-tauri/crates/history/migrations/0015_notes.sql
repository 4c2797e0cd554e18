-- Lines about the user that models are told in the chats of a project or, without one, in chats outside of projects. A person writes
-- or confirms each of them.
CREATE TABLE notes (
    id         TEXT    PRIMARY KEY NOT NULL,
    created_at INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    project_id TEXT    REFERENCES projects (id) ON DELETE CASCADE,
    -- The chat in which it was suggested.
    chat_id    TEXT    REFERENCES chats (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX notes_by_project ON notes (project_id);
CREATE INDEX notes_by_chat ON notes (chat_id) WHERE chat_id IS NOT NULL;

-- 1 if the chats of a project are told its notes.
ALTER TABLE projects ADD COLUMN uses_notes INTEGER NOT NULL DEFAULT 0 CHECK (uses_notes IN (0, 1));

PRAGMA user_version = 15;
