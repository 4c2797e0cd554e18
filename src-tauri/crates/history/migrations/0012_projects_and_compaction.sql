-- One name for one thing: a chat's folder is a project, and the place from which a model sees a chat is a compaction mark. SQLite
-- renames what views, triggers, indexes and foreign keys say of them with it.

ALTER TABLE folders RENAME TO projects;
ALTER TABLE folder_files RENAME TO project_files;
ALTER TABLE project_files RENAME COLUMN folder_id TO project_id;
ALTER TABLE chats RENAME COLUMN folder_id TO project_id;
DROP INDEX chats_by_folder;
CREATE INDEX chats_by_project ON chats (project_id) WHERE project_id IS NOT NULL;

ALTER TABLE messages RENAME COLUMN memory_cut TO compaction_mark;

PRAGMA user_version = 12;
