-- One word for one thing: the field's name for why an answer ended.
ALTER TABLE messages RENAME COLUMN stop TO finish_reason;

PRAGMA user_version = 3;
