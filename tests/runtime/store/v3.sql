PRAGMA application_id = 1414680404;
PRAGMA user_version = 3;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE attempts (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL,
    outcome TEXT NOT NULL, error TEXT, started_at REAL, finished_at REAL NOT NULL, next_at REAL
);
INSERT INTO "attempts" VALUES('waits','',2,1,'failed','{"outcome": "failed", "type": "ConnectionError", "module": "builtins", "message": "down", "place": "orders.py:15", "line": "if len(calls)<2: raise ConnectionError(\"down\")", "function": "flaky", "traceback": ""}',1.79487650445492911335e+09,1.79487650445523381232e+09,1.79487650445619297025e+09);
INSERT INTO "attempts" VALUES('denied','',2,1,'failed','{"outcome": "failed", "type": "ConnectionError", "module": "builtins", "message": "down", "place": "orders.py:15", "line": "if len(calls)<2: raise ConnectionError(\"down\")", "function": "flaky", "traceback": ""}',1.79487650465481925017e+09,1.79487650465515875819e+09,1.79487650465619659424e+09);
INSERT INTO "attempts" VALUES('denied','',6,1,'failed','{"outcome": "failed", "type": "DeniedError", "module": "troth.runtime.workflows.kinds.approval", "message": "''Ship it?'' was denied by bob.", "traceback": ""}',1.79487650485826873776e+09,1.79487650485847258568e+09,NULL);
INSERT INTO "attempts" VALUES('done','',2,1,'failed','{"outcome": "failed", "type": "ConnectionError", "module": "builtins", "message": "down", "place": "orders.py:15", "line": "if len(calls)<2: raise ConnectionError(\"down\")", "function": "flaky", "traceback": ""}',1.79487650487069964411e+09,1.79487650487088584898e+09,1.79487650487193751329e+09);
INSERT INTO "attempts" VALUES('undone','',2,1,'failed','{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "no stock", "place": "orders.py:17", "line": "def never(): raise ValueError(\"no stock\")", "function": "never", "traceback": ""}',1.79487650508134651177e+09,1.79487650508137512204e+09,NULL);
INSERT INTO "attempts" VALUES('stopped','',2,1,'failed','{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "no stock", "place": "orders.py:17", "line": "def never(): raise ValueError(\"no stock\")", "function": "never", "traceback": ""}',1.79487650508888363842e+09,1.79487650508893203729e+09,NULL);
INSERT INTO "attempts" VALUES('forked','',2,1,'failed','{"outcome": "failed", "type": "ConnectionError", "module": "builtins", "message": "down", "place": "orders.py:15", "line": "if len(calls)<2: raise ConnectionError(\"down\")", "function": "flaky", "traceback": ""}',1.79487650487069964411e+09,1.79487650487088584898e+09,1.79487650487193751329e+09);
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL,
    data TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, mac BLOB NOT NULL
);
CREATE TABLE channels (
    name TEXT NOT NULL, owner TEXT NOT NULL, opened_at REAL NOT NULL, PRIMARY KEY (name, owner)
) WITHOUT ROWID;
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY, promise TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
    text TEXT, data TEXT, count INTEGER NOT NULL DEFAULT 1, state TEXT NOT NULL,
    channel TEXT, home TEXT, attempt INTEGER NOT NULL DEFAULT 0, first_attempt_at REAL, due_at REAL,
    owner TEXT, token TEXT, leased_until REAL, receipt TEXT, problem TEXT, declined_by TEXT,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, payload TEXT NOT NULL, at REAL NOT NULL
);
INSERT INTO "events" VALUES(1,'workflow:order@467432b6ed1e',1,'document','{"troth":1,"name":"order","steps":[{"id":"charge","function":"__main__:charge","undo":{"function":"__main__:refund"}},{"id":"flaky","function":"__main__:flaky","retry":{"attempts":3,"delay":"1ms"}},{"id":"all","parallel":[{"id":"x","function":"__main__:charge"},{"id":"y","sleep":"1ms"}]},{"id":"ok","approval":"Ship it?","timeout":"41666d16h"},{"id":"ship","function":"__main__:charge"}]}',1.79487650444475722311e+09);
INSERT INTO "events" VALUES(2,'run:waits',1,'asking','{"place":"ok","question":"Ship it?","shown":{}}',1.7948765044597980976e+09);
INSERT INTO "events" VALUES(3,'run:denied',1,'asking','{"place":"ok","question":"Ship it?","shown":{}}',1.79487650465994763374e+09);
INSERT INTO "events" VALUES(4,'run:done',1,'asking','{"place":"ok","question":"Ship it?","shown":{}}',1.79487650488228464131e+09);
INSERT INTO "events" VALUES(5,'workflow:failing@70d0c018ddc8',1,'document','{"troth":1,"name":"failing","steps":[{"id":"charge","function":"__main__:charge","undo":{"function":"__main__:refund"}},{"id":"ship","function":"__main__:never"}]}',1.79487650508068466185e+09);
INSERT INTO "events" VALUES(6,'workflow:stopping@fdbb9a2b5721',1,'document','{"troth":1,"name":"stopping","on_error":"stop","steps":[{"id":"charge","function":"__main__:charge"},{"id":"ship","function":"__main__:never"}]}',1.79487650508816456787e+09);
CREATE TABLE kills (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, reason TEXT NOT NULL, substitute TEXT,
    at REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 1, answer TEXT
) WITHOUT ROWID;
CREATE TABLE leases (resource TEXT PRIMARY KEY, owner TEXT NOT NULL, token TEXT NOT NULL, taken_at REAL NOT NULL)
WITHOUT ROWID;
CREATE TABLE members (
    session TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, ring INTEGER NOT NULL, score REAL NOT NULL,
    vouched TEXT NOT NULL, actions TEXT NOT NULL, history TEXT, joined_at REAL NOT NULL, left_at REAL,
    elevated INTEGER, elevated_until REAL, tokens REAL, tokens_at REAL NOT NULL,
    breach REAL NOT NULL DEFAULT 0, breach_at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (session, agent)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox_counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE owners (
    id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL, pid_started INTEGER NOT NULL,
    beat_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE promises (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, work TEXT NOT NULL, subject TEXT NOT NULL, title TEXT NOT NULL,
    channel TEXT, home TEXT, state TEXT NOT NULL, result TEXT, error TEXT, retention REAL,
    created_at REAL NOT NULL, settled_at REAL, expires_at REAL, expired_at REAL
) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY, decision TEXT NOT NULL, label TEXT, state TEXT NOT NULL, args TEXT NOT NULL,
    result TEXT, error TEXT, code TEXT, parent TEXT, forked_from TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0, waiting_for TEXT, wake_at REAL,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
);
INSERT INTO "runs" VALUES('waits','workflow:order@467432b6ed1e','order','waiting','["waits",{},""]',NULL,NULL,NULL,NULL,NULL,0,'signal ''approve ok''',5.39487650445983123789e+09,1.79487650444666719433e+09,1.79487650445985031126e+09,NULL);
INSERT INTO "runs" VALUES('denied','workflow:order@467432b6ed1e','order','failed','["denied",{},""]',NULL,'{"outcome": "failed", "type": "WorkflowFailedError", "module": "troth.runtime.workflows.execute.failures", "message": "Step ''ok'' of ''order'' failed with DeniedError: ''Ship it?'' was denied by bob.\nUndone: charge.", "traceback": ""}',NULL,NULL,NULL,0,NULL,NULL,1.79487650465092611314e+09,1.79487650486266493796e+09,1.79487650486266493796e+09);
INSERT INTO "runs" VALUES('done','workflow:order@467432b6ed1e','order','completed','["done",{},""]','42',NULL,NULL,NULL,NULL,0,NULL,NULL,1.79487650486754965785e+09,1.79487650507928013805e+09,1.79487650507928013805e+09);
INSERT INTO "runs" VALUES('undone','workflow:failing@70d0c018ddc8','failing','failed','["undone",{},""]',NULL,'{"outcome": "failed", "type": "WorkflowFailedError", "module": "troth.runtime.workflows.execute.failures", "message": "Step ''ship'' of ''failing'' failed with ValueError: no stock (orders.py:17)\nUndone: charge.", "traceback": "", "origin": "2"}',NULL,NULL,NULL,0,NULL,NULL,1.79487650508091807367e+09,1.79487650508705329894e+09,1.79487650508705329894e+09);
INSERT INTO "runs" VALUES('stopped','workflow:stopping@fdbb9a2b5721','stopping','failed','["stopped",{},""]',NULL,'{"outcome": "failed", "type": "WorkflowFailedError", "module": "troth.runtime.workflows.execute.failures", "message": "Step ''ship'' of ''stopping'' failed with ValueError: no stock (orders.py:17)", "traceback": "", "origin": "2"}',NULL,NULL,NULL,0,NULL,NULL,1.79487650508838248253e+09,1.79487650508997654912e+09,1.79487650508997654912e+09);
INSERT INTO "runs" VALUES('forked','workflow:order@467432b6ed1e','order','waiting','["forked",{},""]',NULL,NULL,NULL,NULL,'done',0,'signal ''approve ok''',5.39487650509277057641e+09,1.79487650509090423587e+09,1.79487650509278130533e+09,NULL);
INSERT INTO "runs" VALUES('plain','plain',NULL,'waiting','[1]',NULL,NULL,NULL,NULL,NULL,0,'signal ''go''',NULL,1.79487650532178282742e+09,1.79487650532441520697e+09,NULL);
CREATE TABLE session_work (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, what TEXT NOT NULL,
    begun_at REAL NOT NULL, is_over INTEGER NOT NULL DEFAULT 0, kill TEXT, handed_to TEXT,
    undone TEXT NOT NULL DEFAULT '[]', process TEXT
) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, creator TEXT NOT NULL, state TEXT NOT NULL, config TEXT NOT NULL,
    created_at REAL NOT NULL, ends_at REAL NOT NULL, ended_at REAL, ending TEXT
) WITHOUT ROWID;
CREATE TABLE signals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    key TEXT, sent_at REAL NOT NULL, taken_by TEXT
);
INSERT INTO "signals" VALUES(1,'denied','approve ok','{"approved":false,"by":"bob","note":null}','approve ok:9065346741b34a878273db90fc41396f',1.7948765048568987847e+09,'5');
INSERT INTO "signals" VALUES(2,'done','approve ok','{"approved":true,"by":"ann","note":null}','approve ok:2641c5ccdc184740aff03a0d89329c6b',1.79487650507512617112e+09,'5');
CREATE TABLE steps (
    run_id TEXT NOT NULL, branch TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    args TEXT NOT NULL, code TEXT, color TEXT, result TEXT, error TEXT,
    started_at REAL NOT NULL, finished_at REAL, wake_at REAL,
    PRIMARY KEY (run_id, branch, seq)
) WITHOUT ROWID;
INSERT INTO "steps" VALUES('denied','',1,'step','charge','done','denied:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650465283751482e+09,1.79487650465463328356e+09,NULL);
INSERT INTO "steps" VALUES('denied','',2,'step','flaky','done','denied:2:flaky',2,'[]','py3.11:2184beffc8181dfd','sync','"up"',NULL,1.79487650465760231015e+09,1.79487650465781736373e+09,NULL);
INSERT INTO "steps" VALUES('denied','',3,'together','all','done','denied:3',1,'[2]',NULL,NULL,'null',NULL,1.79487650465791273111e+09,1.79487650465988564495e+09,NULL);
INSERT INTO "steps" VALUES('denied','',4,'append','run:denied','done','denied:4',1,'["asking",{"place":"ok","question":"Ship it?","shown":{}}]',NULL,NULL,'null',NULL,1.79487650465994763374e+09,1.79487650465994763374e+09,NULL);
INSERT INTO "steps" VALUES('denied','',5,'wait','approve ok','done','denied:5:approve ok',1,'[3600000000.0]',NULL,NULL,'{"approved":false,"by":"bob","note":null}',NULL,1.79487650465996479982e+09,1.79487650485778880114e+09,NULL);
INSERT INTO "steps" VALUES('denied','',6,'step','ok','failed','denied:6:ok',1,'[]',NULL,'sync',NULL,'{"outcome": "failed", "type": "DeniedError", "module": "troth.runtime.workflows.kinds.approval", "message": "''Ship it?'' was denied by bob.", "traceback": ""}',1.79487650485809111596e+09,1.79487650485847258568e+09,NULL);
INSERT INTO "steps" VALUES('denied','',7,'step','undo charge','done','denied:7:undo charge',1,'[]',NULL,'sync','null',NULL,1.79487650485999011991e+09,1.79487650486183547972e+09,NULL);
INSERT INTO "steps" VALUES('denied','3.0/',1,'step','x','done','denied:3.0/1:x',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650465813040738e+09,1.79487650465849637982e+09,NULL);
INSERT INTO "steps" VALUES('denied','3.1/',1,'sleep','y','done','denied:3.1/1:y',1,'[0.001]',NULL,NULL,'null',NULL,1.7948765046581645012e+09,1.79487650465973806379e+09,NULL);
INSERT INTO "steps" VALUES('done','',1,'step','charge','done','done:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650487007761e+09,1.79487650487041902535e+09,NULL);
INSERT INTO "steps" VALUES('done','',2,'step','flaky','done','done:2:flaky',2,'[]','py3.11:2184beffc8181dfd','sync','"up"',NULL,1.79487650487331104271e+09,1.79487650487505722048e+09,NULL);
INSERT INTO "steps" VALUES('done','',3,'together','all','done','done:3',1,'[2]',NULL,NULL,'null',NULL,1.79487650487518239023e+09,1.79487650488219332694e+09,NULL);
INSERT INTO "steps" VALUES('done','',4,'append','run:done','done','done:4',1,'["asking",{"place":"ok","question":"Ship it?","shown":{}}]',NULL,NULL,'null',NULL,1.79487650488228464131e+09,1.79487650488228464131e+09,NULL);
INSERT INTO "steps" VALUES('done','',5,'wait','approve ok','done','done:5:approve ok',1,'[3600000000.0]',NULL,NULL,'{"approved":true,"by":"ann","note":null}',NULL,1.79487650488231301314e+09,1.79487650507796239847e+09,NULL);
INSERT INTO "steps" VALUES('done','',6,'step','ship','done','done:6:ship',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650507821440695e+09,1.79487650507918429379e+09,NULL);
INSERT INTO "steps" VALUES('done','3.0/',1,'step','x','done','done:3.0/1:x',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650487547230719e+09,1.79487650488205552094e+09,NULL);
INSERT INTO "steps" VALUES('done','3.1/',1,'sleep','y','done','done:3.1/1:y',1,'[0.001]',NULL,NULL,'null',NULL,1.79487650487552595143e+09,1.79487650488165760044e+09,NULL);
INSERT INTO "steps" VALUES('forked','',1,'step','charge','done','done:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650487007761e+09,1.79487650487041902535e+09,NULL);
INSERT INTO "steps" VALUES('forked','',2,'step','flaky','done','done:2:flaky',2,'[]','py3.11:2184beffc8181dfd','sync','"up"',NULL,1.79487650487331104271e+09,1.79487650487505722048e+09,NULL);
INSERT INTO "steps" VALUES('forked','',3,'together','all','done','done:3',1,'[2]',NULL,NULL,'null',NULL,1.79487650487518239023e+09,1.79487650488219332694e+09,NULL);
INSERT INTO "steps" VALUES('forked','',4,'append','run:done','done','done:4',1,'["asking",{"place":"ok","question":"Ship it?","shown":{}}]',NULL,NULL,'null',NULL,1.79487650488228464131e+09,1.79487650488228464131e+09,NULL);
INSERT INTO "steps" VALUES('forked','',5,'wait','approve ok','waiting','forked:5:approve ok',1,'[3600000000.0]',NULL,NULL,NULL,NULL,1.79487650509277296066e+09,NULL,5.39487650509277057641e+09);
INSERT INTO "steps" VALUES('forked','3.0/',1,'step','x','done','done:3.0/1:x',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650487547230719e+09,1.79487650488205552094e+09,NULL);
INSERT INTO "steps" VALUES('forked','3.1/',1,'sleep','y','done','done:3.1/1:y',1,'[0.001]',NULL,NULL,'null',NULL,1.79487650487552595143e+09,1.79487650488165760044e+09,NULL);
INSERT INTO "steps" VALUES('plain','',1,'step','one','done','plain:1:one',1,'[]',NULL,'sync','42',NULL,1.79487650532267117497e+09,1.79487650532308268551e+09,NULL);
INSERT INTO "steps" VALUES('plain','',2,'together','together','done','plain:2',1,'[2]',NULL,NULL,'null',NULL,1.79487650532311296468e+09,1.79487650532439160346e+09,NULL);
INSERT INTO "steps" VALUES('plain','',3,'wait','go','waiting','plain:3:go',1,'[null]',NULL,NULL,NULL,NULL,1.79487650532440328595e+09,NULL,NULL);
INSERT INTO "steps" VALUES('plain','2.0/',1,'step','a','done','plain:2.0/1:a',1,'[]',NULL,'sync','42',NULL,1.79487650532333731646e+09,1.79487650532422637937e+09,NULL);
INSERT INTO "steps" VALUES('plain','2.1/',1,'step','b','done','plain:2.1/1:b',1,'[]',NULL,'sync','42',NULL,1.79487650532335638996e+09,1.79487650532430052753e+09,NULL);
INSERT INTO "steps" VALUES('stopped','',1,'step','charge','done','stopped:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.7948765050887191296e+09,1.7948765050888001918e+09,NULL);
INSERT INTO "steps" VALUES('stopped','',2,'step','ship','failed','stopped:2:ship',1,'[]','py3.11:565f6540ce12fafd','sync',NULL,'{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "no stock", "place": "orders.py:17", "line": "def never(): raise ValueError(\"no stock\")", "function": "never", "traceback": ""}',1.79487650508882498742e+09,1.79487650508893203729e+09,NULL);
INSERT INTO "steps" VALUES('undone','',1,'step','charge','done','undone:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650508120417597e+09,1.79487650508125901223e+09,NULL);
INSERT INTO "steps" VALUES('undone','',2,'step','ship','failed','undone:2:ship',1,'[]','py3.11:565f6540ce12fafd','sync',NULL,'{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "no stock", "place": "orders.py:17", "line": "def never(): raise ValueError(\"no stock\")", "function": "never", "traceback": ""}',1.79487650508131027222e+09,1.79487650508137512204e+09,NULL);
INSERT INTO "steps" VALUES('undone','',3,'step','undo charge','done','undone:3:undo charge',1,'[]',NULL,'sync','null',NULL,1.79487650508642101283e+09,1.79487650508666419981e+09,NULL);
INSERT INTO "steps" VALUES('waits','',1,'step','charge','done','waits:1:charge',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650444975852968e+09,1.79487650445425391196e+09,NULL);
INSERT INTO "steps" VALUES('waits','',2,'step','flaky','done','waits:2:flaky',2,'[]','py3.11:2184beffc8181dfd','sync','"up"',NULL,1.79487650445638823506e+09,1.7948765044567408562e+09,NULL);
INSERT INTO "steps" VALUES('waits','',3,'together','all','done','waits:3',1,'[2]',NULL,NULL,'null',NULL,1.79487650445692920684e+09,1.79487650445970058445e+09,NULL);
INSERT INTO "steps" VALUES('waits','',4,'append','run:waits','done','waits:4',1,'["asking",{"place":"ok","question":"Ship it?","shown":{}}]',NULL,NULL,'null',NULL,1.7948765044597980976e+09,1.7948765044597980976e+09,NULL);
INSERT INTO "steps" VALUES('waits','',5,'wait','approve ok','waiting','waits:5:approve ok',1,'[3600000000.0]',NULL,NULL,NULL,NULL,1.79487650445983386044e+09,NULL,5.39487650445983123789e+09);
INSERT INTO "steps" VALUES('waits','3.0/',1,'step','x','done','waits:3.0/1:x',1,'[]','py3.11:9705d2624e749e47','sync','42',NULL,1.79487650445738101002e+09,1.79487650445811915394e+09,NULL);
INSERT INTO "steps" VALUES('waits','3.1/',1,'sleep','y','done','waits:3.1/1:y',1,'[0.001]',NULL,NULL,'null',NULL,1.79487650445744776729e+09,1.79487650445947599414e+09,NULL);
CREATE TABLE workspace (
    session TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, owner TEXT NOT NULL,
    readers TEXT, writers TEXT, written_at REAL NOT NULL, PRIMARY KEY (session, path)
) WITHOUT ROWID;
CREATE TABLE workspace_snapshots (
    session TEXT NOT NULL, snapshot TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, owner TEXT NOT NULL,
    readers TEXT, writers TEXT, written_at REAL NOT NULL, PRIMARY KEY (session, snapshot, path)
) WITHOUT ROWID;
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
CREATE INDEX sessions_by_age ON sessions (created_at, id);
CREATE INDEX sessions_by_state ON sessions (state, created_at, id);
CREATE INDEX sessions_due ON sessions (ends_at) WHERE state IN ('created', 'handshaking', 'active');
CREATE INDEX members_present ON members (session) WHERE state IN ('present', 'suspended');
CREATE INDEX session_work_open ON session_work (session, agent) WHERE is_over = 0;
CREATE INDEX session_work_by_kill ON session_work (kill) WHERE kill IS NOT NULL;
CREATE INDEX kills_by_agent ON kills (session, agent, at);
CREATE INDEX audit_by_session ON audit (session, seq);
CREATE UNIQUE INDEX promises_open ON promises (work, subject) WHERE state = 'open';
CREATE INDEX promises_by_subject ON promises (work, subject);
CREATE INDEX promises_by_session ON promises (session, created_at, id);
CREATE INDEX promises_expiring ON promises (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX deliveries_by_promise ON deliveries (promise, kind, seq);
CREATE INDEX deliveries_due ON deliveries (channel, due_at, created_at) WHERE state = 'due';
CREATE INDEX deliveries_due_at_home ON deliveries (home) WHERE state = 'due' AND home IS NOT NULL;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE state = 'leased';
CREATE INDEX deliveries_stored ON deliveries (session, created_at) WHERE state = 'stored';
CREATE INDEX deliveries_stored_for ON deliveries (channel) WHERE state = 'stored' AND channel IS NOT NULL;
CREATE INDEX deliveries_owed ON deliveries (created_at, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_dead ON deliveries (created_at, id) WHERE state = 'dead';
CREATE INDEX deliveries_by_age ON deliveries (created_at, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',6);
INSERT INTO "sqlite_sequence" VALUES('signals',2);
COMMIT;
