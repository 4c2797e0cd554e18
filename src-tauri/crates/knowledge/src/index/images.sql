-- Images, which a model reads when the person says so.

-- 1 for an image.
ALTER TABLE files ADD COLUMN is_image INTEGER NOT NULL DEFAULT 0 CHECK (is_image IN (0, 1));
-- The name of the model that read it, and its text, which only a model can write again.
ALTER TABLE files ADD COLUMN described_by TEXT;
ALTER TABLE files ADD COLUMN description TEXT;

-- A file that failed may be an image.
UPDATE files SET recipe = NULL WHERE state = 'failed';

PRAGMA user_version = 2;
