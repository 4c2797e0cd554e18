-- Collections of documents that the chats of a project ask: their ids in the index, as JSON. The index is another file, which is
-- made anew from the documents.
ALTER TABLE projects ADD COLUMN collections TEXT NOT NULL DEFAULT '[]';

PRAGMA user_version = 14;
