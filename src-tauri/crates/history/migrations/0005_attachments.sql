-- Pictures of messages and drafts. Their bytes lie as files beside the database, in attachments/<sha256>, each once. A part or a draft
-- names its picture by the hash; what nobody names any more is removed.

CREATE TABLE attachments (
    -- SHA-256 of the bytes, hexadecimal.
    sha256     TEXT    PRIMARY KEY NOT NULL,
    -- Such as image/png.
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    -- In pixels, as the picture is to be looked at.
    width      INTEGER NOT NULL,
    height     INTEGER NOT NULL,
    -- When it was last added.
    made_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The content of a picture is JSON; a text's is none, and the index leaves it out.
CREATE INDEX parts_by_attachment ON parts (json_extract(content, '$.attachment')) WHERE kind = 'image';

-- Who names which picture: messages, those of chats in the trash among them, and drafts.
CREATE VIEW attachment_links AS
SELECT json_extract(p.content, '$.attachment') AS sha256, m.chat_id AS chat_id, m.id AS message_id
  FROM parts p JOIN messages m ON m.id = p.message_id WHERE p.kind = 'image'
UNION ALL
SELECT json_extract(d.value, '$.attachment'), c.id, NULL
  FROM chats c, json_each(c.draft) d WHERE json_extract(d.value, '$.kind') = 'image';

PRAGMA user_version = 5;
