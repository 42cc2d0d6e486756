-- The tables of a journal. Money, prices, quantities and sizes are decimal text, sessions ISO dates, times ISO in UTC with
-- microseconds, `json` columns one JSON document. `run` is a run's id, `book` the owner whose book a row belongs to, empty
-- for the desk's one book. `event` of a desk's row is the last event before it. Where `packed` is not NULL it has the
-- row's long texts (engine.journal.rows), and their columns are empty.

-- Where processes meet: events in order, commands, and what became of those.
CREATE TABLE events (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   time TEXT NOT NULL,
   type TEXT NOT NULL,
   json TEXT NOT NULL,
   packed BLOB
) STRICT;
-- Two types of events are looked for by their run.
CREATE INDEX idx_events_of_ends ON events (run) WHERE type IN ('DecisionMade', 'RunFinished');

CREATE TABLE commands (
   seq INTEGER PRIMARY KEY,
   time TEXT NOT NULL,
   type TEXT NOT NULL,
   json TEXT NOT NULL,
   event INTEGER
) STRICT;

CREATE TABLE command_states (
   seq INTEGER PRIMARY KEY,
   command INTEGER NOT NULL,
   time TEXT NOT NULL,
   state TEXT NOT NULL,
   event INTEGER
) STRICT;
CREATE UNIQUE INDEX idx_command_states_command_state ON command_states (command, state);

-- Runs. The present state of a run, an order or a command is the last row of its states.
CREATE TABLE runs (
   id TEXT PRIMARY KEY,
   kind TEXT NOT NULL,
   name TEXT NOT NULL,
   label TEXT NOT NULL,
   spec TEXT,
   symbols TEXT NOT NULL,
   session TEXT,
   cycle INTEGER NOT NULL,
   started TEXT NOT NULL,
   event INTEGER
) STRICT;
CREATE INDEX idx_runs_kind_session ON runs (kind, session);

CREATE TABLE run_states (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   time TEXT NOT NULL,
   outcome TEXT,
   value TEXT,
   detail TEXT NOT NULL,
   model TEXT,
   extra TEXT,
   event INTEGER,
   packed BLOB
) STRICT;
CREATE INDEX idx_run_states_run ON run_states (run);

CREATE TABLE stretches (
   run TEXT NOT NULL,
   part TEXT NOT NULL,
   initial_value TEXT NOT NULL,
   event INTEGER,
   PRIMARY KEY (run, part)
) STRICT;

CREATE TABLE documents (
   run TEXT NOT NULL,
   kind TEXT NOT NULL,
   json TEXT NOT NULL,
   event INTEGER,
   packed BLOB,
   PRIMARY KEY (run, kind)
) STRICT;

CREATE TABLE dropped (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   source TEXT NOT NULL,
   reason TEXT NOT NULL,
   count INTEGER NOT NULL,
   event INTEGER
) STRICT;

CREATE TABLE notes (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   time TEXT,
   level TEXT NOT NULL,
   text TEXT NOT NULL,
   event INTEGER
) STRICT;

-- Questions to the models, by the names of their prompts and charts, and what came of them. `unanswered` are calls that no
-- agent got an answer from: those that failed, and the preflight of a run.
CREATE TABLE prompts (
   hash TEXT PRIMARY KEY,
   text TEXT NOT NULL
) STRICT;

CREATE TABLE charts (
   fingerprint TEXT PRIMARY KEY,
   json TEXT NOT NULL,
   packed BLOB
) STRICT;

CREATE TABLE answers (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   agent TEXT NOT NULL,
   attempt INTEGER NOT NULL,
   sample INTEGER NOT NULL,
   time TEXT NOT NULL,
   model TEXT NOT NULL,
   prompt_hash TEXT NOT NULL,
   prompt_version TEXT NOT NULL,
   system TEXT NOT NULL,
   messages TEXT NOT NULL,
   charts TEXT NOT NULL,
   seen INTEGER NOT NULL,
   view TEXT NOT NULL,
   outcome TEXT NOT NULL,
   reason TEXT NOT NULL,
   answer TEXT,
   raw TEXT,
   text TEXT NOT NULL,
   failure TEXT,
   failure_detail TEXT,
   stop_reason TEXT NOT NULL,
   tier TEXT NOT NULL,
   input_tokens INTEGER NOT NULL,
   cached_input_tokens INTEGER NOT NULL,
   output_tokens INTEGER NOT NULL,
   reasoning_tokens INTEGER NOT NULL,
   cost TEXT,
   latency REAL NOT NULL,
   request_hash TEXT NOT NULL,
   cached INTEGER NOT NULL,
   notes TEXT NOT NULL,
   event INTEGER,
   packed BLOB
) STRICT;
CREATE INDEX idx_answers_session_symbol ON answers (session, symbol);

CREATE TABLE unanswered (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   time TEXT NOT NULL,
   agent TEXT NOT NULL,
   model TEXT NOT NULL,
   kind TEXT NOT NULL,
   attempt INTEGER NOT NULL,
   detail TEXT NOT NULL,
   input_tokens INTEGER NOT NULL,
   output_tokens INTEGER NOT NULL,
   estimated INTEGER NOT NULL,
   cost TEXT,
   latency REAL NOT NULL,
   event INTEGER
) STRICT;
CREATE INDEX idx_unanswered_run_session_symbol ON unanswered (run, session, symbol);

-- Opinions of the owners, their debates, and the decisions made of them; every outcome.
CREATE TABLE opinions (
   run TEXT NOT NULL,
   part TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   action TEXT NOT NULL,
   size TEXT NOT NULL,
   reason TEXT NOT NULL,
   rule TEXT,
   evidence TEXT NOT NULL,
   unresolved TEXT NOT NULL,
   confidence TEXT,
   event INTEGER,
   packed BLOB,
   PRIMARY KEY (run, session, cycle, symbol, owner)
) STRICT;
CREATE INDEX idx_opinions_symbol_session ON opinions (symbol, session);

CREATE TABLE debates (
   run TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   decides INTEGER NOT NULL,
   ended TEXT NOT NULL,
   advice TEXT NOT NULL,
   comments TEXT NOT NULL,
   event INTEGER,
   packed BLOB,
   PRIMARY KEY (run, session, cycle, symbol, owner)
) STRICT;

CREATE TABLE decisions (
   run TEXT NOT NULL,
   part TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   book TEXT NOT NULL,
   action TEXT NOT NULL,
   size TEXT NOT NULL,
   proposed_action TEXT NOT NULL,
   proposed_size INTEGER NOT NULL,
   proposed_rule TEXT,
   explanation TEXT NOT NULL,
   abstained TEXT NOT NULL,
   evidence TEXT NOT NULL,
   cuts TEXT NOT NULL,
   unresolved TEXT NOT NULL,
   event INTEGER,
   PRIMARY KEY (run, session, cycle, symbol, owner)
) STRICT;
CREATE INDEX idx_decisions_symbol_session ON decisions (symbol, session);

CREATE TABLE outcomes (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   decision_session TEXT NOT NULL,
   cycle INTEGER,
   horizon INTEGER,
   session TEXT NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   action TEXT NOT NULL,
   size TEXT NOT NULL,
   close TEXT NOT NULL,
   reward TEXT NOT NULL,
   cumulative TEXT NOT NULL,
   key_factors TEXT NOT NULL,
   event INTEGER
) STRICT;
CREATE INDEX idx_outcomes_symbol_owner_session ON outcomes (symbol, owner, session);
-- In an index NULL differs from NULL: the one outcome of a session without a cycle is a cycle 0 of its own.
CREATE UNIQUE INDEX one_outcome_per_decision ON outcomes (run, decision_session, symbol, owner, ifnull(cycle, 0), ifnull(horizon, 0));

-- The memories recalled for an opinion are one JSON list; their texts are named by their content.
CREATE TABLE memories (
   id TEXT PRIMARY KEY,
   kind TEXT NOT NULL,
   written TEXT NOT NULL,
   text TEXT NOT NULL
) STRICT;

CREATE TABLE recalls (
   run TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   memories TEXT NOT NULL,
   event INTEGER,
   packed BLOB,
   PRIMARY KEY (run, session, cycle, symbol, owner)
) STRICT;

-- What a run could read in a cycle: a JSON list of names with the hashes of their parts, each of which is there once.
CREATE TABLE chunks (
   hash TEXT PRIMARY KEY,
   text TEXT NOT NULL,
   packed BLOB
) STRICT;

CREATE TABLE inputs (
   run TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   chunks TEXT NOT NULL,
   event INTEGER,
   PRIMARY KEY (run, cycle)
) STRICT;

-- Orders, and the trades that came of them. `time` of a trade is UTC, NULL in a backtest.
CREATE TABLE orders (
   id TEXT PRIMARY KEY,
   run TEXT NOT NULL,
   desk TEXT NOT NULL,
   session TEXT NOT NULL,
   cycle INTEGER NOT NULL,
   symbol TEXT NOT NULL,
   owner TEXT NOT NULL,
   book TEXT NOT NULL,
   side TEXT NOT NULL,
   quantity TEXT,
   notional TEXT,
   reason TEXT NOT NULL,
   time TEXT NOT NULL,
   event INTEGER
) STRICT;
CREATE INDEX idx_orders_session_symbol ON orders (session, symbol);

CREATE TABLE order_states (
   seq INTEGER PRIMARY KEY,
   order_id TEXT NOT NULL,
   time TEXT NOT NULL,
   state TEXT NOT NULL,
   filled_quantity TEXT NOT NULL,
   detail TEXT NOT NULL,
   event INTEGER
) STRICT;
CREATE INDEX idx_order_states_order_id ON order_states (order_id);

CREATE TABLE fills (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   part TEXT NOT NULL,
   order_id TEXT NOT NULL,
   owner TEXT NOT NULL,
   book TEXT NOT NULL,
   session TEXT NOT NULL,
   time TEXT,
   symbol TEXT NOT NULL,
   side TEXT NOT NULL,
   quantity TEXT NOT NULL,
   price TEXT NOT NULL,
   fee TEXT NOT NULL,
   reason TEXT NOT NULL,
   execution TEXT,
   event INTEGER
) STRICT;
CREATE INDEX idx_fills_order_id ON fills (order_id);
CREATE INDEX idx_fills_run_session ON fills (run, session);
-- A broker's stream and its history tell of the same execution more than once.
CREATE UNIQUE INDEX one_fill_per_execution ON fills (order_id, execution);

CREATE TABLE cash_flows (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   part TEXT NOT NULL,
   book TEXT NOT NULL,
   session TEXT NOT NULL,
   symbol TEXT NOT NULL,
   kind TEXT NOT NULL,
   amount TEXT NOT NULL,
   quantity TEXT NOT NULL,
   description TEXT NOT NULL,
   execution TEXT,
   event INTEGER
) STRICT;
CREATE INDEX idx_cash_flows_run_session ON cash_flows (run, session);
CREATE UNIQUE INDEX one_flow_per_activity ON cash_flows (execution);

-- The books at each close; `positions` has by symbol its price, quantity and average cost, of a flat one whose price was
-- known the price alone.
CREATE TABLE equity (
   run TEXT NOT NULL,
   session TEXT NOT NULL,
   owner TEXT NOT NULL,
   book TEXT NOT NULL,
   part TEXT NOT NULL,
   value TEXT NOT NULL,
   cash TEXT NOT NULL,
   money_step TEXT NOT NULL,
   positions TEXT NOT NULL,
   event INTEGER,
   PRIMARY KEY (run, session, book)
) STRICT;

-- A broker's account behind a desk: its id, its activity, the broker's ids of orders, and adopted differences. `booked` is
-- 0 for activity from before the desk, or of nobody's order.
CREATE TABLE accounts (
   seq INTEGER PRIMARY KEY,
   kind TEXT NOT NULL,
   account TEXT NOT NULL,
   time TEXT NOT NULL,
   event INTEGER
) STRICT;

CREATE TABLE activities (
   id TEXT PRIMARY KEY,
   run TEXT NOT NULL,
   kind TEXT NOT NULL,
   time TEXT NOT NULL,
   symbol TEXT,
   broker_id TEXT NOT NULL,
   side TEXT,
   quantity TEXT NOT NULL,
   price TEXT,
   amount TEXT NOT NULL,
   description TEXT NOT NULL,
   booked INTEGER NOT NULL,
   event INTEGER
) STRICT;

CREATE TABLE broker_orders (
   broker_id TEXT PRIMARY KEY,
   order_id TEXT NOT NULL,
   event INTEGER
) STRICT;

CREATE TABLE adoptions (
   seq INTEGER PRIMARY KEY,
   run TEXT NOT NULL,
   time TEXT NOT NULL,
   session TEXT NOT NULL,
   symbol TEXT NOT NULL,
   before TEXT NOT NULL,
   after TEXT NOT NULL,
   price TEXT NOT NULL,
   reason TEXT NOT NULL,
   event INTEGER
) STRICT;

-- One row for every time that a window was looked at; `returns` is a compressed JSON list.
CREATE TABLE looks (
   seq INTEGER PRIMARY KEY,
   time TEXT NOT NULL,
   kind TEXT NOT NULL,
   run TEXT NOT NULL,
   name TEXT NOT NULL,
   symbols TEXT NOT NULL,
   first TEXT NOT NULL,
   last TEXT NOT NULL,
   spec_hash TEXT NOT NULL,
   returns BLOB NOT NULL
) STRICT;
CREATE INDEX idx_looks_first_last ON looks (first, last);

-- The chain of hashes: a link for every row, in the order in which they were written. `source` is the table's place in the
-- list of chained tables, `row` its row's number, `hash` is SHA-256 over the link before and the row's values.
CREATE TABLE chain (
   seq INTEGER PRIMARY KEY,
   source INTEGER NOT NULL,
   row INTEGER NOT NULL,
   hash BLOB NOT NULL
) STRICT;

-- The versions that the journal has had: how many links there were before, and the hash of the schema.
CREATE TABLE versions (
   seq INTEGER PRIMARY KEY,
   version INTEGER NOT NULL,
   earlier INTEGER NOT NULL,
   schema BLOB NOT NULL
) STRICT;
