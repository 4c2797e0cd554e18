-- Settings of a chat, and those that an answer was asked with, become one JSON value each: a new setting needs no column.
-- Why an answer ended has the field's name. What a part may hold is decided by the program alone. A tool's result is a row.

ALTER TABLE chats ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
UPDATE chats SET settings = json_object('model', model, 'thinking', thinking, 'thinking_budget', thinking_budget,
                                        'system_prompt', system_prompt, 'sampling', json(sampling));

-- The settings that an answer was asked with, without the instructions, which are the chat's. NULL for every other message.
ALTER TABLE messages ADD COLUMN settings TEXT;
UPDATE messages SET settings = json_object('model', model, 'thinking', thinking, 'thinking_budget', thinking_budget, 'system_prompt', '',
                                           'sampling', (SELECT json(c.sampling) FROM chats c WHERE c.id = chat_id))
 WHERE role = 'assistant';

ALTER TABLE chats DROP COLUMN model;
ALTER TABLE chats DROP COLUMN thinking;
ALTER TABLE chats DROP COLUMN thinking_budget;
ALTER TABLE chats DROP COLUMN system_prompt;
ALTER TABLE chats DROP COLUMN sampling;
ALTER TABLE messages DROP COLUMN thinking;
ALTER TABLE messages DROP COLUMN thinking_budget;

ALTER TABLE messages RENAME COLUMN stop TO finish_reason;

-- Whether the thought was ended for the model, by the person or by the budget, so that no second one begins when it is continued.
ALTER TABLE messages ADD COLUMN thinking_ended INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET thinking_ended = 1
 WHERE EXISTS (SELECT 1 FROM json_each(notices) WHERE json_extract(value, '$.code') = 'thinking_ended');

-- The kinds of parts stand in the program alone, so the table is made anew without its list of them. Ids of calls become unique,
-- of nine letters and digits, as templates demand.
CREATE TABLE new_parts (
    message_id TEXT    NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    -- The text of a text or a thought; of every other kind its fields as JSON.
    content    TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    PRIMARY KEY (message_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO new_parts (message_id, position, kind, content, started_at, ended_at)
SELECT message_id, position, kind,
       CASE kind WHEN 'tool_call' THEN json_object('call', json_set(content, '$.id', substr(lower(hex(randomblob(5))), 1, 9)))
                 ELSE content END,
       started_at, ended_at
  FROM parts;
DROP TABLE parts;
ALTER TABLE new_parts RENAME TO parts;

-- A draft is a list of parts, as a message is.
ALTER TABLE chats RENAME COLUMN draft TO draft_text;
ALTER TABLE chats ADD COLUMN draft TEXT NOT NULL DEFAULT '[]';
UPDATE chats SET draft = json_array(json_object('kind', 'text', 'text', draft_text)) WHERE draft_text <> '';
ALTER TABLE chats DROP COLUMN draft_text;

-- The call whose result a row of a tool is. Every call has one row at most.
ALTER TABLE messages ADD COLUMN tool_call_id TEXT;
CREATE UNIQUE INDEX messages_by_call ON messages (chat_id, tool_call_id) WHERE tool_call_id IS NOT NULL;

PRAGMA user_version = 3;
