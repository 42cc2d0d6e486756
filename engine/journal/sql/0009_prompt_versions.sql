-- The version of the prompt that a question was made of, empty for answers of before there were any; the part of an
-- answer's tokens that the model's service calls reasoning.
ALTER TABLE answers ADD COLUMN prompt_version TEXT NOT NULL DEFAULT '';
ALTER TABLE answers ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
