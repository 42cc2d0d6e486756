-- State changes are rows: the present state of a run, an order or a command is its last one. Owners and their books
-- are part of every key; opinions of all owners and looks at windows have tables. Triggers are lifted before this, and
-- put back after it.

-- What was updated until now in runs, orders and commands becomes appended rows.
CREATE TABLE "run_states" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "outcome" TEXT,
   "value" TEXT,
   "detail" TEXT NOT NULL,
   "model" TEXT,
   "extra" TEXT
) STRICT;

INSERT INTO run_states (run, time, outcome, value, detail, model, extra)
    SELECT id, started, NULL, NULL, '', NULL, NULL FROM runs ORDER BY rowid;
INSERT INTO run_states (run, time, outcome, value, detail, model, extra)
    SELECT id, coalesce(ended, started), outcome, value, detail, model, extra FROM runs
    WHERE coalesce(outcome, value, model, extra) IS NOT NULL ORDER BY rowid;

CREATE INDEX "idx_run_states_run"
    ON "run_states" ("run");

ALTER TABLE runs DROP COLUMN ended;
ALTER TABLE runs DROP COLUMN outcome;
ALTER TABLE runs DROP COLUMN value;
ALTER TABLE runs DROP COLUMN detail;
ALTER TABLE runs DROP COLUMN model;
ALTER TABLE runs DROP COLUMN extra;

CREATE TABLE "command_states" (
   "seq" INTEGER PRIMARY KEY,
   "command" INTEGER NOT NULL,
   "time" TEXT NOT NULL,
   "state" TEXT NOT NULL
) STRICT;

INSERT INTO command_states (command, time, state)
    SELECT seq, done, 'done' FROM commands WHERE done IS NOT NULL ORDER BY seq;

CREATE UNIQUE INDEX "idx_command_states_command_state"
    ON "command_states" ("command", "state");

ALTER TABLE commands DROP COLUMN done;

ALTER TABLE order_moves RENAME TO order_states;
DROP INDEX idx_order_moves_order_id;
CREATE INDEX "idx_order_states_order_id"
    ON "order_states" ("order_id");

ALTER TABLE orders DROP COLUMN state;

-- Owner and book stand in every row that can belong to one; what is on record was decided by one owner alone.
ALTER TABLE decisions ADD COLUMN book TEXT NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN book TEXT NOT NULL DEFAULT '';
ALTER TABLE cash_flows ADD COLUMN book TEXT NOT NULL DEFAULT '';
ALTER TABLE fills ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE fills ADD COLUMN book TEXT NOT NULL DEFAULT '';

UPDATE orders SET owner = made.owner FROM decisions AS made
    WHERE made.run = orders.run
    AND made.session = orders.session AND made.cycle = orders.cycle AND made.symbol = orders.symbol;

UPDATE fills SET owner = orders.owner FROM orders WHERE orders.id = fills.order_id;

CREATE TABLE "equity_new" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "book" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "value" TEXT NOT NULL,
   "cash" TEXT NOT NULL,
   "money_step" TEXT NOT NULL,
   PRIMARY KEY ("run", "session", "book")
) STRICT;

INSERT INTO equity_new (run, session, owner, book, part, value, cash, money_step)
    SELECT run, session, '', '', part, value, cash, money_step
    FROM equity ORDER BY rowid;
DROP TABLE equity;
ALTER TABLE equity_new RENAME TO equity;

CREATE TABLE "positions_new" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "book" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "quantity" TEXT NOT NULL,
   "price" TEXT,
   "average_cost" TEXT,
   PRIMARY KEY ("run", "session", "book", "symbol")
) STRICT;

INSERT INTO positions_new (run, session, owner, book, symbol, quantity, price, average_cost)
    SELECT run, session, '', '', symbol, quantity, price, average_cost
    FROM positions ORDER BY rowid;
DROP TABLE positions;
ALTER TABLE positions_new RENAME TO positions;

CREATE INDEX "idx_positions_symbol_session"
    ON "positions" ("symbol", "session");

CREATE TABLE "outcomes_new" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "decision_session" TEXT NOT NULL,
   "cycle" INTEGER,
   "horizon" INTEGER,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "action" TEXT NOT NULL,
   "size" TEXT NOT NULL,
   "close" TEXT NOT NULL,
   "reward" TEXT NOT NULL,
   "cumulative" TEXT NOT NULL,
   "key_factors" TEXT NOT NULL
) STRICT;

INSERT INTO outcomes_new (seq, run, decision_session, cycle, horizon, session, symbol, owner, action, size, close, reward, cumulative, key_factors)
    SELECT NULL, run, decision_session, NULL, NULL, session, symbol, owner, action, size, close, reward, cumulative, key_factors
    FROM outcomes ORDER BY rowid;
DROP TABLE outcomes;
ALTER TABLE outcomes_new RENAME TO outcomes;

CREATE INDEX "idx_outcomes_symbol_owner_session"
    ON "outcomes" ("symbol", "owner", "session");

-- In an index NULL differs from NULL: the one outcome of a session without a cycle is a cycle 0 of its own.
CREATE UNIQUE INDEX one_outcome_per_decision ON outcomes
        (run, decision_session, symbol, owner, ifnull(cycle, 0), ifnull(horizon, 0));

-- A decision on record was the opinion of its one owner.
CREATE TABLE "opinions" (
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "action" TEXT NOT NULL,
   "size" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "rule" TEXT,
   "evidence" TEXT NOT NULL,
   "unresolved" TEXT NOT NULL,
   "confidence" TEXT,
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner")
) STRICT;

INSERT INTO opinions
    SELECT run, part, session, cycle, symbol, owner, asked_action, CAST(asked_size AS TEXT),
    CASE abstained WHEN '' THEN explanation ELSE abstained END, asked_rule, evidence, unresolved, NULL
    FROM decisions ORDER BY rowid;

CREATE INDEX "idx_opinions_symbol_session"
    ON "opinions" ("symbol", "session");

CREATE TABLE "looks" (
   "seq" INTEGER PRIMARY KEY,
   "time" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "run" TEXT NOT NULL,
   "name" TEXT NOT NULL,
   "symbols" TEXT NOT NULL,
   "first" TEXT NOT NULL,
   "last" TEXT NOT NULL,
   "spec_hash" TEXT NOT NULL,
   "returns" BLOB NOT NULL
) STRICT;

CREATE INDEX "idx_looks_first_last"
    ON "looks" ("first", "last");

ALTER TABLE cash_flows RENAME COLUMN words TO description;
ALTER TABLE activities RENAME COLUMN words TO description;
ALTER TABLE decisions RENAME COLUMN asked_action TO proposed_action;
ALTER TABLE decisions RENAME COLUMN asked_size TO proposed_size;
ALTER TABLE decisions RENAME COLUMN asked_rule TO proposed_rule;
