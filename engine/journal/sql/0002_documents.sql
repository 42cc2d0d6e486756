-- A run as one JSON document per kind, so that it can be shown again without its data.
CREATE TABLE "documents" (
   "run" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "json" TEXT NOT NULL,
   PRIMARY KEY ("run", "kind")
) STRICT;
