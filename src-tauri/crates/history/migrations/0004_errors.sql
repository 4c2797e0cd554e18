-- Why an answer failed is kept whole, as JSON: its code, what the sentence names, and the sentence.

ALTER TABLE messages ADD COLUMN error TEXT;
UPDATE messages SET error = json_object('code', error_code, 'message', error_message)
 WHERE error_code IS NOT NULL AND error_message IS NOT NULL;

ALTER TABLE messages DROP COLUMN error_code;
ALTER TABLE messages DROP COLUMN error_message;

PRAGMA user_version = 4;
