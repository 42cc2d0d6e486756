-- Runs, events, commands, answers, decisions, orders and books.

-- Where processes meet: events in order, and commands.
CREATE TABLE "events" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "type" TEXT NOT NULL,
   "json" TEXT NOT NULL
) STRICT;

CREATE TABLE "commands" (
   "seq" INTEGER PRIMARY KEY,
   "time" TEXT NOT NULL,
   "type" TEXT NOT NULL,
   "json" TEXT NOT NULL,
   "done" TEXT
) STRICT;

CREATE TABLE "runs" (
   "id" TEXT PRIMARY KEY,
   "kind" TEXT NOT NULL,
   "name" TEXT NOT NULL,
   "label" TEXT NOT NULL,
   "spec" TEXT,
   "symbols" TEXT NOT NULL,
   "session" TEXT,
   "cycle" INTEGER NOT NULL,
   "started" TEXT NOT NULL,
   "ended" TEXT,
   "outcome" TEXT,
   "value" TEXT,
   "detail" TEXT NOT NULL,
   "model" TEXT,
   "extra" TEXT
) STRICT;

CREATE TABLE "stretches" (
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "initial_value" TEXT NOT NULL,
   PRIMARY KEY ("run", "part")
) STRICT;

-- Questions to the models, their answers, and the decisions made of them.
CREATE TABLE "prompts" (
   "hash" TEXT PRIMARY KEY,
   "text" TEXT NOT NULL
) STRICT;

CREATE TABLE "charts" (
   "fingerprint" TEXT PRIMARY KEY,
   "json" TEXT NOT NULL
) STRICT;

CREATE TABLE "answers" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "agent" TEXT NOT NULL,
   "attempt" INTEGER NOT NULL,
   "sample" INTEGER NOT NULL,
   "time" TEXT NOT NULL,
   "model" TEXT NOT NULL,
   "prompt_hash" TEXT NOT NULL,
   "system" TEXT NOT NULL,
   "messages" TEXT NOT NULL,
   "charts" TEXT NOT NULL,
   "seen" INTEGER NOT NULL,
   "view" TEXT NOT NULL,
   "outcome" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "answer" TEXT,
   "raw" TEXT,
   "text" TEXT NOT NULL,
   "failure" TEXT,
   "failure_detail" TEXT,
   "stop_reason" TEXT NOT NULL,
   "input_tokens" INTEGER NOT NULL,
   "cached_input_tokens" INTEGER NOT NULL,
   "output_tokens" INTEGER NOT NULL,
   "cost" TEXT,
   "latency" REAL NOT NULL,
   "request_hash" TEXT NOT NULL,
   "cached" INTEGER NOT NULL,
   "notes" TEXT NOT NULL
) STRICT;

CREATE TABLE "decisions" (
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "action" TEXT NOT NULL,
   "size" TEXT NOT NULL,
   "asked_action" TEXT NOT NULL,
   "asked_size" INTEGER NOT NULL,
   "asked_rule" TEXT,
   "explanation" TEXT NOT NULL,
   "abstained" TEXT NOT NULL,
   "cuts" TEXT NOT NULL,
   "unresolved" TEXT NOT NULL,
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner")
) STRICT;

-- Orders, their states, and the trades that came of them.
CREATE TABLE "orders" (
   "id" TEXT PRIMARY KEY,
   "run" TEXT NOT NULL,
   "desk" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "symbol" TEXT NOT NULL,
   "side" TEXT NOT NULL,
   "quantity" TEXT,
   "notional" TEXT,
   "reason" TEXT NOT NULL,
   "state" TEXT NOT NULL,
   "time" TEXT NOT NULL
) STRICT;

CREATE TABLE "order_moves" (
   "seq" INTEGER PRIMARY KEY,
   "order_id" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "state" TEXT NOT NULL,
   "filled_quantity" TEXT NOT NULL,
   "detail" TEXT NOT NULL
) STRICT;

CREATE TABLE "fills" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "order_id" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "side" TEXT NOT NULL,
   "quantity" TEXT NOT NULL,
   "price" TEXT NOT NULL,
   "fee" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "execution" TEXT
) STRICT;

CREATE TABLE "cash_flows" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "amount" TEXT NOT NULL
) STRICT;

-- The books at each close; a flat symbol whose price was known has quantity 0 and no cost.
CREATE TABLE "equity" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "value" TEXT NOT NULL,
   "cash" TEXT NOT NULL,
   "money_step" TEXT NOT NULL,
   PRIMARY KEY ("run", "session")
) STRICT;

CREATE TABLE "positions" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "quantity" TEXT NOT NULL,
   "price" TEXT,
   "average_cost" TEXT,
   PRIMARY KEY ("run", "session", "symbol")
) STRICT;

CREATE TABLE "outcomes" (
   "run" TEXT NOT NULL,
   "decision_session" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "owner" TEXT NOT NULL,
   "action" TEXT NOT NULL,
   "size" TEXT NOT NULL,
   "close" TEXT NOT NULL,
   "reward" TEXT NOT NULL,
   "cumulative" TEXT NOT NULL,
   "key_factors" TEXT NOT NULL,
   PRIMARY KEY ("run", "decision_session", "symbol", "owner")
) STRICT;

CREATE TABLE "dropped" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "source" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "count" INTEGER NOT NULL
) STRICT;

CREATE TABLE "notes" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT,
   "level" TEXT NOT NULL,
   "text" TEXT NOT NULL
) STRICT;

CREATE INDEX "idx_events_run_type"
    ON "events" ("run", "type");
CREATE INDEX "idx_runs_kind_session"
    ON "runs" ("kind", "session");
CREATE INDEX "idx_answers_run_session_cycle_symbol_owner"
    ON "answers" ("run", "session", "cycle", "symbol", "owner");
CREATE INDEX "idx_decisions_symbol_session"
    ON "decisions" ("symbol", "session");
CREATE INDEX "idx_orders_session_symbol"
    ON "orders" ("session", "symbol");
CREATE INDEX "idx_order_moves_order_id"
    ON "order_moves" ("order_id");
CREATE INDEX "idx_fills_order_id"
    ON "fills" ("order_id");
CREATE INDEX "idx_fills_run_session"
    ON "fills" ("run", "session");
CREATE INDEX "idx_cash_flows_run_session"
    ON "cash_flows" ("run", "session");
CREATE INDEX "idx_positions_symbol_session"
    ON "positions" ("symbol", "session");
CREATE INDEX "idx_outcomes_symbol_owner_session"
    ON "outcomes" ("symbol", "owner", "session");

-- A broker's stream and its history tell of the same execution more than once.
CREATE UNIQUE INDEX "one_fill_per_execution"
    ON "fills" ("order_id", "execution");

CREATE TRIGGER events_no_update BEFORE UPDATE ON events  BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events  BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER answers_no_update BEFORE UPDATE ON answers  BEGIN SELECT RAISE(ABORT, 'answers are never changed'); END;
CREATE TRIGGER answers_no_delete BEFORE DELETE ON answers  BEGIN SELECT RAISE(ABORT, 'answers are never deleted'); END;
CREATE TRIGGER order_moves_no_update BEFORE UPDATE ON order_moves  BEGIN SELECT RAISE(ABORT, 'order_moves are never changed'); END;
CREATE TRIGGER order_moves_no_delete BEFORE DELETE ON order_moves  BEGIN SELECT RAISE(ABORT, 'order_moves are never deleted'); END;
CREATE TRIGGER fills_no_update BEFORE UPDATE ON fills  BEGIN SELECT RAISE(ABORT, 'fills are never changed'); END;
CREATE TRIGGER fills_no_delete BEFORE DELETE ON fills  BEGIN SELECT RAISE(ABORT, 'fills are never deleted'); END;
CREATE TRIGGER cash_flows_no_update BEFORE UPDATE ON cash_flows  BEGIN SELECT RAISE(ABORT, 'cash_flows are never changed'); END;
CREATE TRIGGER cash_flows_no_delete BEFORE DELETE ON cash_flows  BEGIN SELECT RAISE(ABORT, 'cash_flows are never deleted'); END;
CREATE TRIGGER notes_no_update BEFORE UPDATE ON notes  BEGIN SELECT RAISE(ABORT, 'notes are never changed'); END;
CREATE TRIGGER notes_no_delete BEFORE DELETE ON notes  BEGIN SELECT RAISE(ABORT, 'notes are never deleted'); END;
CREATE TRIGGER prompts_no_update BEFORE UPDATE ON prompts  BEGIN SELECT RAISE(ABORT, 'prompts are never changed'); END;
CREATE TRIGGER prompts_no_delete BEFORE DELETE ON prompts  BEGIN SELECT RAISE(ABORT, 'prompts are never deleted'); END;
CREATE TRIGGER charts_no_update BEFORE UPDATE ON charts  BEGIN SELECT RAISE(ABORT, 'charts are never changed'); END;
CREATE TRIGGER charts_no_delete BEFORE DELETE ON charts  BEGIN SELECT RAISE(ABORT, 'charts are never deleted'); END;
CREATE TRIGGER commands_no_delete BEFORE DELETE ON commands  BEGIN SELECT RAISE(ABORT, 'commands are never deleted'); END;
CREATE TRIGGER commands_no_update_of_seq_time_type_json BEFORE UPDATE OF seq, time, type, json ON commands  BEGIN SELECT RAISE(ABORT, 'a command is never changed'); END;
CREATE TRIGGER commands_no_update_of_done BEFORE UPDATE OF done ON commands WHEN OLD.done IS NOT NULL BEGIN SELECT RAISE(ABORT, 'a command is done once'); END;
