-- The texts of an answer (a JSON object of its messages, text, raw and answer) and the JSON of a chart, compressed;
-- the columns that they had before are empty where `packed` is not.
ALTER TABLE answers ADD COLUMN packed BLOB;
ALTER TABLE charts ADD COLUMN packed BLOB;
