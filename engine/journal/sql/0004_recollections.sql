-- The memories recalled for a decision, with the figures they were ranked by; a memory's text is stored once.
CREATE TABLE "memories" (
   "id" TEXT PRIMARY KEY,
   "kind" TEXT NOT NULL,
   "written" TEXT NOT NULL,
   "text" TEXT NOT NULL
) STRICT;

CREATE TABLE "recollections" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "memory" TEXT NOT NULL,
   "layer" TEXT NOT NULL,
   "recency" REAL NOT NULL,
   "relevancy" REAL NOT NULL,
   "importance" REAL NOT NULL,
   "score" REAL NOT NULL,
   "rank" INTEGER NOT NULL,
   "types" TEXT NOT NULL,
   "cited" INTEGER NOT NULL,
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner", "memory")
) STRICT;

CREATE TRIGGER memories_no_update BEFORE UPDATE ON memories  BEGIN SELECT RAISE(ABORT, 'memories are never changed'); END;
CREATE TRIGGER memories_no_delete BEFORE DELETE ON memories  BEGIN SELECT RAISE(ABORT, 'memories are never deleted'); END;
CREATE TRIGGER recollections_no_update BEFORE UPDATE ON recollections  BEGIN SELECT RAISE(ABORT, 'recollections are never changed'); END;
CREATE TRIGGER recollections_no_delete BEFORE DELETE ON recollections  BEGIN SELECT RAISE(ABORT, 'recollections are never deleted'); END;
