-- Calls of models that no agent got an answer from: those that failed, and the preflight of a run.
CREATE TABLE "unanswered" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "agent" TEXT NOT NULL,
   "model" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "attempt" INTEGER NOT NULL,
   "detail" TEXT NOT NULL,
   "input_tokens" INTEGER NOT NULL,
   "output_tokens" INTEGER NOT NULL,
   "estimated" INTEGER NOT NULL,
   "cost" TEXT,
   "latency" REAL NOT NULL,
   "event" INTEGER
) STRICT;

CREATE INDEX "idx_unanswered_run_session_symbol"
    ON "unanswered" ("run", "session", "symbol");
