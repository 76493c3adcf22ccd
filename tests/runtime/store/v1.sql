PRAGMA application_id = 1414680404;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE attempts (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL,
    outcome TEXT NOT NULL, error TEXT, started_at REAL, finished_at REAL NOT NULL, next_at REAL
);
INSERT INTO "attempts" VALUES('order-1','',2,1,'timeout','{"type":"TimeoutError","message":"slow"}',1002.0,1003.0,1004.0);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, payload TEXT NOT NULL, at REAL NOT NULL
);
INSERT INTO "events" VALUES(1,'talk',1,'said','"hello"',1000.0);
INSERT INTO "events" VALUES(2,'talk',2,'said','"again"',1001.0);
CREATE TABLE leases (resource TEXT PRIMARY KEY, owner TEXT NOT NULL, token TEXT NOT NULL, taken_at REAL NOT NULL)
WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('made by','1');
CREATE TABLE owners (
    id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL, pid_started INTEGER NOT NULL,
    beat_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY, decision TEXT NOT NULL, label TEXT, state TEXT NOT NULL, args TEXT NOT NULL,
    result TEXT, error TEXT, code TEXT, parent TEXT, forked_from TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0, waiting_for TEXT, wake_at REAL,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
);
INSERT INTO "runs" VALUES('order-1','order','orders','completed','["o-1"]','{"sent":true}',NULL,NULL,NULL,NULL,0,NULL,NULL,1000.0,1005.0,1005.0);
CREATE TABLE signals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    key TEXT, sent_at REAL NOT NULL, taken_by TEXT
);
INSERT INTO "signals" VALUES(1,'order-1','approve','true','k',1001.5,NULL);
CREATE TABLE steps (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    args TEXT NOT NULL, code TEXT, color TEXT, result TEXT, error TEXT,
    started_at REAL NOT NULL, finished_at REAL, wake_at REAL,
    PRIMARY KEY (run_id, branch, seq)
) WITHOUT ROWID;
INSERT INTO "steps" VALUES('order-1','',1,'step','charge','done','order-1:1:charge',1,'["o-1"]',NULL,'sync','42',NULL,1001.0,1002.0,NULL);
INSERT INTO "steps" VALUES('order-1','',2,'step','ship','done','order-1:2:ship',2,'[]',NULL,'async','null',NULL,1004.0,1005.0,NULL);
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_by_decision ON runs (decision, created_at, id);
CREATE INDEX runs_by_label ON runs (label, created_at, id) WHERE label IS NOT NULL;
CREATE INDEX runs_to_cancel ON runs (state) WHERE cancel_requested = 1;
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX attempts_by_place ON attempts (run_id, branch, seq);
CREATE INDEX signals_untaken ON signals (run_id, name, id) WHERE taken_by IS NULL;
CREATE INDEX signals_by_run ON signals (run_id, id);
CREATE UNIQUE INDEX signals_once ON signals (run_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX events_by_place ON events (stream, seq);
CREATE INDEX leases_by_owner ON leases (owner);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('signals',1);
INSERT INTO "sqlite_sequence" VALUES('events',2);
COMMIT;
