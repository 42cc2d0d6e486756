-- Debates of several owners on a symbol: their advice round by round, and their comments, each a JSON document.
CREATE TABLE "debates" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "decides" INTEGER NOT NULL,
   "ended" TEXT NOT NULL,
   "advice" TEXT NOT NULL,
   "comments" TEXT NOT NULL,
   "event" INTEGER,
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner")
) STRICT;
