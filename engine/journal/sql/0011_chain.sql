-- The chain of hashes: a link for every row, in the order in which they were written. `source` is the table's place in
-- the list of chained tables, `row` its row's number, `hash` is SHA-256 over the link before and the row's values.
CREATE TABLE "chain" (
   "seq" INTEGER PRIMARY KEY,
   "source" INTEGER NOT NULL,
   "row" INTEGER NOT NULL,
   "hash" BLOB NOT NULL
) STRICT;

-- The versions that the journal has had since its chain began: how many links there were before, and the hash of the
-- schema. The first one's `earlier` rows were there before there was a chain.
CREATE TABLE "versions" (
   "seq" INTEGER PRIMARY KEY,
   "version" INTEGER NOT NULL,
   "earlier" INTEGER NOT NULL,
   "schema" BLOB NOT NULL
) STRICT;
