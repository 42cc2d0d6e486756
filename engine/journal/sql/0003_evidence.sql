-- The memories that a decision rests on: a JSON list of their ids.
ALTER TABLE decisions ADD COLUMN evidence TEXT NOT NULL DEFAULT '[]';
