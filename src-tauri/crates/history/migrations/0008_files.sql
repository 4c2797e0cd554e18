-- Files beside pictures: of a file its text is kept, as an attachment that is named by the hash of the text and has 0 for width and height.

DROP INDEX parts_by_attachment;
CREATE INDEX parts_by_attachment ON parts (json_extract(content, '$.attachment')) WHERE kind IN ('image', 'file');

-- Who names which picture or text: messages, those of chats in the trash among them, and drafts.
DROP VIEW attachment_links;
CREATE VIEW attachment_links AS
SELECT json_extract(p.content, '$.attachment') AS sha256, m.chat_id AS chat_id, m.id AS message_id
  FROM parts p JOIN messages m ON m.id = p.message_id WHERE p.kind IN ('image', 'file')
UNION ALL
SELECT json_extract(d.value, '$.attachment'), c.id, NULL
  FROM chats c, json_each(c.draft) d WHERE json_extract(d.value, '$.kind') IN ('image', 'file');

PRAGMA user_version = 8;
