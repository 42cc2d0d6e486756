-- A journal of version 7, dumped by the program of version 0.1 (sqlite3's iterdump): a desk's daily runs of two sessions
-- (failed and gone on with, done, halted and killed), a cycle within a session, and a backtest, with a row in every table.
BEGIN TRANSACTION;
CREATE TABLE "accounts" (
   "seq" INTEGER PRIMARY KEY,
   "kind" TEXT NOT NULL,
   "account" TEXT NOT NULL,
   "time" TEXT NOT NULL
) STRICT;
INSERT INTO "accounts" VALUES(1,'alpaca','PA1','2024-03-04T21:00:01.000000+00:00');
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
INSERT INTO "activities" VALUES('x1','daily-desk-20240305','fill','2024-03-05T21:00:01.000000+00:00','AAA','b-1','BUY','44.55','101.01','-4500.50','fill',1);
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
INSERT INTO "adoptions" VALUES(1,'daily-desk-20240305','2024-03-05T21:00:01.000000+00:00','2024-03-05','','1.00','2.00','0','a test');
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
, packed BLOB) STRICT;
INSERT INTO "answers" VALUES(1,'daily-desk-20240304','2024-03-04',1,'AAA','default','decision',1,0,'2024-03-04T21:00:01.000000+00:00','offline','h','d9bdc74c9cc0377afc8a722d00f846acce019bfde93f5c69926047e771237d75','','["3cd744b19e694030e642615bbe4e30a00fb569612f4bb401eb22e7d236c68df7"]',1,'','answered','',NULL,NULL,'',NULL,NULL,'',30,0,7,'0.02',0.0,'q1',0,'[]',X'785E6DCE3D0E82401040E1AB90A9B7D89F61101A13EF608C21143BBB835000865DC58478776DEC2C5FF2156F073FA74D566876F0218FCB0C0D9CCE57782B9824257F93044DDBC2237D9182CBE073312D4F89451EA4B8AF639023A8165C8815229B5AA846EDB4105A3225B3A038EDB5EEB9A49A8CED9119B511B656AA681D053AC4BE82AEEB14AC7EFB7792E5957FF5015A9A35B0');
CREATE TABLE "broker_orders" (
   "broker_id" TEXT PRIMARY KEY,
   "order_id" TEXT NOT NULL
) STRICT;
INSERT INTO "broker_orders" VALUES('b-1','desk-20240304-1-AAA-B-1');
CREATE TABLE "cash_flows" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "amount" TEXT NOT NULL
, quantity TEXT NOT NULL DEFAULT '0', words TEXT NOT NULL DEFAULT '', execution TEXT) STRICT;
INSERT INTO "cash_flows" VALUES(1,'daily-desk-20240305','live','2024-03-05','AAA','dividend','10.00','0','a dividend of AAA',NULL);
CREATE TABLE "charts" (
   "fingerprint" TEXT PRIMARY KEY,
   "json" TEXT NOT NULL
, packed BLOB) STRICT;
INSERT INTO "charts" VALUES('3cd744b19e694030e642615bbe4e30a00fb569612f4bb401eb22e7d236c68df7','',X'785E2D8CC10A842014457F25DEBAC2719A8D3BBF235A983E26C954340889FE7D9E4DBB7BB887738256DE38CC204ED02E640431BEFACFD4C262BF0B01EF19810B076D761F21A2BF2D365D2DACD61B101093D508245A5F6323799B4A2BA607A2F2E89E9D31671B7C25E08C0F1D7B776C80FA946D0E8E72524A8AED7677F8A7662E8D5105AE1FF4E0357E');
CREATE TABLE "chunks" (
   "hash" TEXT PRIMARY KEY,
   "data" BLOB NOT NULL
) STRICT;
INSERT INTO "chunks" VALUES('fed7f05c10bc95d597e6f8103228c4c1',X'78DA2B482C2A51C8CF4B05000E2D031A');
INSERT INTO "chunks" VALUES('ea5683cba58035f4f3b937023cba704f',X'78DA2B482C2A512829CF07000E580332');
CREATE TABLE "commands" (
   "seq" INTEGER PRIMARY KEY,
   "time" TEXT NOT NULL,
   "type" TEXT NOT NULL,
   "json" TEXT NOT NULL,
   "done" TEXT
) STRICT;
INSERT INTO "commands" VALUES(1,'2024-03-05T21:00:01.000000+00:00','Halt','{"reason":"lunch"}','2024-03-05T21:00:01.000000+00:00');
INSERT INTO "commands" VALUES(2,'2024-03-05T22:00:01.000000+00:00','Resume','{}','2024-03-05T22:00:01.000000+00:00');
INSERT INTO "commands" VALUES(3,'2024-03-05T22:00:01.000000+00:00','Approve','{"order_id":"desk-20240305-1-BBB-S-1"}',NULL);
INSERT INTO "commands" VALUES(4,'2024-03-05T23:00:01.000000+00:00','PauseCycle','{}',NULL);
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
   "unresolved" TEXT NOT NULL, evidence TEXT NOT NULL DEFAULT '[]',
   PRIMARY KEY ("run", "session", "cycle", "symbol", "owner")
) STRICT;
INSERT INTO "decisions" VALUES('daily-desk-20240304','live','2024-03-04',1,'AAA','default','BUY','4.5','BUY',8,'dip in an uptrend','it rises by 3 %','','[{"allowed":"4.5","asked":"8","reason":"cash","rule":"cash floor"}]','["3 %"]','["m1"]');
INSERT INTO "decisions" VALUES('daily-desk-20240304','live','2024-03-04',1,'BBB','default','ABSTAIN','0','ABSTAIN',0,NULL,'','no valid answer','[]','[]','[]');
INSERT INTO "decisions" VALUES('bt','test','2024-03-04',1,'AAA','default','HOLD','0','HOLD',0,NULL,'','','[]','[]','[]');
CREATE TABLE "documents" (
   "run" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "json" TEXT NOT NULL,
   PRIMARY KEY ("run", "kind")
) STRICT;
INSERT INTO "documents" VALUES('daily-desk-20240305','day','{"schema":1}');
CREATE TABLE "dropped" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "source" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "count" INTEGER NOT NULL
) STRICT;
INSERT INTO "dropped" VALUES(1,'daily-desk-20240305','news','no date',2);
CREATE TABLE "equity" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "value" TEXT NOT NULL,
   "cash" TEXT NOT NULL,
   "money_step" TEXT NOT NULL,
   PRIMARY KEY ("run", "session")
) STRICT;
INSERT INTO "equity" VALUES('daily-desk-20240304','2024-03-04','live','100000.00','100000.00','0.01');
INSERT INTO "equity" VALUES('daily-desk-20240305','2024-03-05','live','100055.49','95510.50','0.01');
CREATE TABLE "events" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "type" TEXT NOT NULL,
   "json" TEXT NOT NULL
) STRICT;
INSERT INTO "events" VALUES(1,'daily-desk-20240304','2024-03-04T21:00:01.000000+00:00','Noticed','{"level":"info","run":"daily-desk-20240304","text":"a remark","time":"2024-03-04T21:00:01+00:00","type":"Noticed"}');
INSERT INTO "events" VALUES(2,'daily-desk-20240304','2024-03-04T23:00:01.000000+00:00','RunFinished','{"detail":"","outcome":"done","run":"daily-desk-20240304","time":"2024-03-04T23:00:01+00:00","type":"RunFinished","value":"100000.00"}');
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
INSERT INTO "fills" VALUES(1,'daily-desk-20240305','live','desk-20240304-1-AAA-B-1','2024-03-05','AAA','BUY','44.55','101.01','0.50','dip','x1');
CREATE TABLE "inputs" (
   "run" TEXT NOT NULL,
   "cycle" INTEGER NOT NULL,
   "name" TEXT NOT NULL,
   "chunks" TEXT NOT NULL,
   PRIMARY KEY ("run", "cycle", "name")
) STRICT;
INSERT INTO "inputs" VALUES('daily-desk-20240304',1,'bars AAA','["fed7f05c10bc95d597e6f8103228c4c1","ea5683cba58035f4f3b937023cba704f"]');
CREATE TABLE "memories" (
   "id" TEXT PRIMARY KEY,
   "kind" TEXT NOT NULL,
   "written" TEXT NOT NULL,
   "text" TEXT NOT NULL
) STRICT;
INSERT INTO "memories" VALUES('m1','news','2024-03-04','AAA opens a plant');
CREATE TABLE "notes" (
   "seq" INTEGER PRIMARY KEY,
   "run" TEXT NOT NULL,
   "time" TEXT,
   "level" TEXT NOT NULL,
   "text" TEXT NOT NULL
) STRICT;
INSERT INTO "notes" VALUES(1,'daily-desk-20240305','2024-03-05T21:00:01.000000+00:00','warning','a note');
INSERT INTO "notes" VALUES(2,'bt',NULL,'info','no actions');
CREATE TABLE "order_moves" (
   "seq" INTEGER PRIMARY KEY,
   "order_id" TEXT NOT NULL,
   "time" TEXT NOT NULL,
   "state" TEXT NOT NULL,
   "filled_quantity" TEXT NOT NULL,
   "detail" TEXT NOT NULL
) STRICT;
INSERT INTO "order_moves" VALUES(1,'desk-20240304-1-AAA-B-1','2024-03-04T21:00:01.000000+00:00','intended','0','');
INSERT INTO "order_moves" VALUES(2,'desk-20240304-1-AAA-B-1','2024-03-04T21:00:01.000000+00:00','submitting','0','');
INSERT INTO "order_moves" VALUES(3,'desk-20240304-1-AAA-B-1','2024-03-04T21:00:01.000000+00:00','acknowledged','0','');
INSERT INTO "order_moves" VALUES(4,'desk-20240304-1-AAA-B-1','2024-03-05T21:00:01.000000+00:00','filled','44.55','');
INSERT INTO "order_moves" VALUES(5,'desk-20240305-1-BBB-S-1','2024-03-05T21:00:01.000000+00:00','intended','0','');
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
INSERT INTO "orders" VALUES('desk-20240304-1-AAA-B-1','daily-desk-20240304','desk','2024-03-04',1,'AAA','BUY',NULL,'4500.00','dip','filled','2024-03-04T21:00:01.000000+00:00');
INSERT INTO "orders" VALUES('desk-20240305-1-BBB-S-1','daily-desk-20240305','desk','2024-03-05',1,'BBB','SELL','1',NULL,'','intended','2024-03-05T21:00:01.000000+00:00');
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
INSERT INTO "outcomes" VALUES('daily-desk-20240305','2024-03-04','2024-03-05','AAA','default','BUY','4.5','102.02','0.0005','0.0005','it rose');
CREATE TABLE "positions" (
   "run" TEXT NOT NULL,
   "session" TEXT NOT NULL,
   "symbol" TEXT NOT NULL,
   "quantity" TEXT NOT NULL,
   "price" TEXT,
   "average_cost" TEXT,
   PRIMARY KEY ("run", "session", "symbol")
) STRICT;
INSERT INTO "positions" VALUES('daily-desk-20240305','2024-03-05','AAA','44.55','102.02','101.01');
INSERT INTO "positions" VALUES('daily-desk-20240305','2024-03-05','BBB','0','5',NULL);
CREATE TABLE "prompts" (
   "hash" TEXT PRIMARY KEY,
   "text" TEXT NOT NULL
) STRICT;
INSERT INTO "prompts" VALUES('d9bdc74c9cc0377afc8a722d00f846acce019bfde93f5c69926047e771237d75','You decide.');
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
INSERT INTO "recollections" VALUES('daily-desk-20240304','2024-03-04',1,'AAA','default','m1','shallow',0.5,0.25,60.0,1.5,1,'["short-term"]',1);
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
INSERT INTO "runs" VALUES('daily-desk-20240304','daily','finvision','rules',NULL,'["AAA","BBB"]','2024-03-04',1,'2024-03-04T21:00:01.000000+00:00','2024-03-04T23:00:01.000000+00:00','done','100000.00','','{"abstentions":0,"cached_calls":0,"calls":2,"cost":"0.02","input_tokens":30,"output_tokens":7,"spec":"offline"}','{"broker":"simulated","mode":"auto"}');
INSERT INTO "runs" VALUES('session-desk-20240304-2','session','finvision','rules',NULL,'["AAA","BBB"]','2024-03-04',2,'2024-03-04T15:00:01.000000+00:00','2024-03-05T15:00:01.000000+00:00','waiting','100000.00','',NULL,NULL);
INSERT INTO "runs" VALUES('daily-desk-20240305','daily','finvision','rules',NULL,'["AAA","BBB"]','2024-03-05',1,'2024-03-05T21:00:01.000000+00:00',NULL,NULL,'100055.49','','{"abstentions":0,"cached_calls":0,"calls":2,"cost":"0.02","input_tokens":30,"output_tokens":7,"spec":"offline"}','{"broker":"simulated","mode":"ask"}');
INSERT INTO "runs" VALUES('bt','backtest','buy-and-hold','','{"briefing":null,"cash":"1000","commission":null,"convention":"desk","data":{"demo_seed":0,"folder":null,"macro":[]},"embedder":null,"first":"2024-03-05","journal":null,"last":"2024-03-06","model":null,"params":[["fast","5"]],"preset":null,"run":"bt","sample":0,"seed":0,"slippage_bp":null,"strategy":"buy-and-hold","symbols":["AAA"],"warm_up_from":null,"without":[]}','["AAA"]',NULL,0,'2024-03-06T21:00:01.000000+00:00','2024-03-06T22:00:01.000000+00:00','done','1000','',NULL,'{"seed":1}');
CREATE TABLE "stretches" (
   "run" TEXT NOT NULL,
   "part" TEXT NOT NULL,
   "initial_value" TEXT NOT NULL,
   PRIMARY KEY ("run", "part")
) STRICT;
INSERT INTO "stretches" VALUES('bt','test','1000');
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
CREATE TRIGGER memories_no_update BEFORE UPDATE ON memories  BEGIN SELECT RAISE(ABORT, 'memories are never changed'); END;
CREATE TRIGGER memories_no_delete BEFORE DELETE ON memories  BEGIN SELECT RAISE(ABORT, 'memories are never deleted'); END;
CREATE TRIGGER recollections_no_update BEFORE UPDATE ON recollections  BEGIN SELECT RAISE(ABORT, 'recollections are never changed'); END;
CREATE TRIGGER recollections_no_delete BEFORE DELETE ON recollections  BEGIN SELECT RAISE(ABORT, 'recollections are never deleted'); END;
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
CREATE TRIGGER chunks_no_update BEFORE UPDATE ON chunks  BEGIN SELECT RAISE(ABORT, 'chunks are never changed'); END;
CREATE TRIGGER chunks_no_delete BEFORE DELETE ON chunks  BEGIN SELECT RAISE(ABORT, 'chunks are never deleted'); END;
CREATE TRIGGER inputs_no_update BEFORE UPDATE ON inputs  BEGIN SELECT RAISE(ABORT, 'inputs are never changed'); END;
CREATE TRIGGER inputs_no_delete BEFORE DELETE ON inputs  BEGIN SELECT RAISE(ABORT, 'inputs are never deleted'); END;
COMMIT;
PRAGMA application_id = 1346652721;
PRAGMA user_version = 7;
