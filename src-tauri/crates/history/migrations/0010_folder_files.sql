-- Files of folders: every chat in a folder takes their texts along, in this order. The texts are attachments, as those of messages are.

CREATE TABLE folder_files (
    folder_id  TEXT    NOT NULL REFERENCES folders (id) ON DELETE CASCADE,
    -- The attachment that is its text; so a text is in a folder once.
    sha256     TEXT    NOT NULL,
    -- Its place among the files of the folder.
    position   INTEGER NOT NULL,
    -- The file as messages have it, as JSON: its name, its kind and the part of its text that is meant.
    content    TEXT    NOT NULL,
    -- Set while its removal can be taken back.
    removed_at INTEGER,
    PRIMARY KEY (folder_id, sha256)
) STRICT, WITHOUT ROWID;

-- Who names which picture or text: messages, those of chats in the trash among them, drafts, and folders.
DROP VIEW attachment_links;
CREATE VIEW attachment_links AS
SELECT json_extract(p.content, '$.attachment') AS sha256, m.chat_id AS chat_id, m.id AS message_id
  FROM parts p JOIN messages m ON m.id = p.message_id WHERE p.kind IN ('image', 'file')
UNION ALL
SELECT json_extract(d.value, '$.attachment'), c.id, NULL
  FROM chats c, json_each(c.draft) d WHERE json_extract(d.value, '$.kind') IN ('image', 'file')
UNION ALL
SELECT f.sha256, NULL, NULL FROM folder_files f;

PRAGMA user_version = 10;
