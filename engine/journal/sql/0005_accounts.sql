-- A broker's account behind a desk: its id, its activity, the broker's ids of orders, and adopted differences.
-- `booked` is 0 for activity from before the desk, or of nobody's order.
CREATE TABLE "accounts" (
   "seq" INTEGER PRIMARY KEY,
   "kind" TEXT NOT NULL,
   "account" TEXT NOT NULL,
   "time" TEXT NOT NULL
) STRICT;

CREATE TABLE "activities" (
   "id" TEXT PRIMARY KEY,
   "run" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "symbol" TEXT,
   "broker_id" TEXT NOT NULL,
   "side" TEXT,
   "quantity" TEXT NOT NULL,
   "price" TEXT,
   "amount" TEXT NOT NULL,
   "words" TEXT NOT NULL,
   "booked" INTEGER NOT NULL
) STRICT;

CREATE TABLE "broker_orders" (
   "broker_id" TEXT PRIMARY KEY,
   "order_id" TEXT NOT NULL
) STRICT;

CREATE TABLE "adoptions" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "before" TEXT NOT NULL,
   "after" TEXT NOT NULL,
   "price" TEXT NOT NULL,
   "reason" TEXT NOT NULL
) STRICT;

ALTER TABLE cash_flows ADD COLUMN quantity TEXT NOT NULL DEFAULT '0';
ALTER TABLE cash_flows ADD COLUMN words TEXT NOT NULL DEFAULT '';
ALTER TABLE cash_flows ADD COLUMN execution TEXT;

CREATE UNIQUE INDEX "one_flow_per_activity"
    ON "cash_flows" ("execution");

CREATE TRIGGER accounts_no_update BEFORE UPDATE ON accounts  BEGIN SELECT RAISE(ABORT, 'accounts are never changed'); END;
CREATE TRIGGER accounts_no_delete BEFORE DELETE ON accounts  BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
CREATE TRIGGER activities_no_update BEFORE UPDATE ON activities  BEGIN SELECT RAISE(ABORT, 'activities are never changed'); END;
CREATE TRIGGER activities_no_delete BEFORE DELETE ON activities  BEGIN SELECT RAISE(ABORT, 'activities are never deleted'); END;
CREATE TRIGGER broker_orders_no_update BEFORE UPDATE ON broker_orders  BEGIN SELECT RAISE(ABORT, 'broker_orders are never changed'); END;
CREATE TRIGGER broker_orders_no_delete BEFORE DELETE ON broker_orders  BEGIN SELECT RAISE(ABORT, 'broker_orders are never deleted'); END;
CREATE TRIGGER adoptions_no_update BEFORE UPDATE ON adoptions  BEGIN SELECT RAISE(ABORT, 'adoptions are never changed'); END;
CREATE TRIGGER adoptions_no_delete BEFORE DELETE ON adoptions  BEGIN SELECT RAISE(ABORT, 'adoptions are never deleted'); END;
