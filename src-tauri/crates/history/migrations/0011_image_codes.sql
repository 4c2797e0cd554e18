-- The error codes of images: one name for one thing.
UPDATE messages SET error = json_set(error, '$.code', replace(json_extract(error, '$.code'), 'picture_', 'image_'))
 WHERE json_extract(error, '$.code') IN ('picture_broken', 'picture_not_seen');

PRAGMA user_version = 11;
