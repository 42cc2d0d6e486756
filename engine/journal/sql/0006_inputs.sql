-- The inputs of a run when it decided, by name: lists of parts, each compressed and stored once under the hash of its
-- content.
CREATE TABLE "chunks" (
   "hash" TEXT PRIMARY KEY,
   "data" BLOB NOT NULL
) STRICT;

CREATE TABLE "inputs" (
   "run" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "name" TEXT NOT NULL,
   "chunks" TEXT NOT NULL,
   PRIMARY KEY ("run", "cycle", "name")
) STRICT;

CREATE TRIGGER chunks_no_update BEFORE UPDATE ON chunks  BEGIN SELECT RAISE(ABORT, 'chunks are never changed'); END;
CREATE TRIGGER chunks_no_delete BEFORE DELETE ON chunks  BEGIN SELECT RAISE(ABORT, 'chunks are never deleted'); END;
CREATE TRIGGER inputs_no_update BEFORE UPDATE ON inputs  BEGIN SELECT RAISE(ABORT, 'inputs are never changed'); END;
CREATE TRIGGER inputs_no_delete BEFORE DELETE ON inputs  BEGIN SELECT RAISE(ABORT, 'inputs are never deleted'); END;
