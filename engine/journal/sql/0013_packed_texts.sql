-- Long texts of rows lie together in `packed` (engine.journal.packing), and their columns are empty; rows of before stay
-- as they are. `about` of a chart and `name` of a part of the inputs tell its thread; `request` is the hash of
-- a request in half the bytes of its digits.
ALTER TABLE answers ADD COLUMN request BLOB;
ALTER TABLE inputs ADD COLUMN packed BLOB;
ALTER TABLE opinions ADD COLUMN packed BLOB;
ALTER TABLE decisions ADD COLUMN packed BLOB;
ALTER TABLE events ADD COLUMN packed BLOB;
ALTER TABLE memories ADD COLUMN packed BLOB;
ALTER TABLE debates ADD COLUMN packed BLOB;
ALTER TABLE outcomes ADD COLUMN packed BLOB;
ALTER TABLE run_states ADD COLUMN packed BLOB;
ALTER TABLE documents ADD COLUMN packed BLOB;
ALTER TABLE charts ADD COLUMN about TEXT;
ALTER TABLE chunks ADD COLUMN name TEXT;
ALTER TABLE chunks ADD COLUMN text TEXT;
ALTER TABLE chunks ADD COLUMN packed BLOB;

-- Indexes were as large as a part of the texts. Two types of events are looked for by their run; a session and a symbol
-- lead to the answers of a decision.
DROP INDEX idx_events_run_type;
CREATE INDEX "idx_events_of_ends"
    ON "events" ("run") WHERE type IN ('DecisionMade', 'RunFinished');
DROP INDEX idx_answers_run_session_cycle_symbol_owner;
CREATE INDEX "idx_answers_session_symbol"
    ON "answers" ("session", "symbol");

-- The memories that were recalled for an opinion, all in one row: a JSON list. Before, each had a row in recollections.
CREATE TABLE "recalls" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "memories" TEXT NOT NULL,
   "event" INTEGER,
   "packed" BLOB,
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner")
) STRICT;
