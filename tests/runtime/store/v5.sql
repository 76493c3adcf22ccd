PRAGMA application_id = 1414680404;
PRAGMA user_version = 5;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE asks (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, arguments TEXT NOT NULL,
    digest TEXT NOT NULL, policy TEXT NOT NULL, reason TEXT NOT NULL, people INTEGER NOT NULL,
    asked_at REAL NOT NULL, expires_at REAL NOT NULL, state TEXT NOT NULL, answers TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL,
    data TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, mac BLOB NOT NULL
);
CREATE TABLE channels (
    name TEXT NOT NULL, owner TEXT NOT NULL, opened_at REAL NOT NULL, PRIMARY KEY (name, owner)
) WITHOUT ROWID;
INSERT INTO "channels" VALUES('chat','176dd131e0094895bdb8b1bb773ed648',1790000000.016);
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY, promise TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
    text TEXT, data TEXT, count INTEGER NOT NULL DEFAULT 1, state TEXT NOT NULL,
    channel TEXT, home TEXT, attempt INTEGER NOT NULL DEFAULT 0, first_attempt_at REAL, due_at REAL,
    owner TEXT, token TEXT, leased_until REAL, receipt TEXT, problem TEXT, declined_by TEXT,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
) WITHOUT ROWID;
INSERT INTO "deliveries" VALUES('cancelled-done-1','cancelled','bob','done',1,NULL,NULL,1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.524,1790000000.524,NULL);
INSERT INTO "deliveries" VALUES('dead-done-1','dead','ann','done',1,NULL,NULL,1,'dead','chat',NULL,2,1790000000.03,NULL,NULL,NULL,NULL,NULL,'`send` raised ConnectionError: nobody answers',NULL,1790000000.03,1790000000.042,1790000000.042);
INSERT INTO "deliveries" VALUES('delivered-done-1','delivered','ann','done',1,NULL,NULL,1,'delivered','chat',NULL,1,1790000000.018,NULL,NULL,NULL,NULL,'m-1',NULL,NULL,1790000000.018,1790000000.019,1790000000.019);
INSERT INTO "deliveries" VALUES('expired-done-1','expired','bob','done',1,NULL,NULL,1,'expired',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.055,1790000000.516,1790000000.516);
INSERT INTO "deliveries" VALUES('failed-done-1','failed','bob','done',1,NULL,NULL,1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.054,1790000000.054,NULL);
INSERT INTO "deliveries" VALUES('job-done-1','job','bob','done',1,'`echo hit; echo hit; exit 3` ended with exit code 3.
hit
hit',NULL,1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.558,1790000000.558,NULL);
INSERT INTO "deliveries" VALUES('job-watch-1','job','bob','watch',1,'`echo hit; echo hit; exit 3` printed: hit','{"line":"hit","pattern":"hit","offset":0}',1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.558,1790000000.558,NULL);
INSERT INTO "deliveries" VALUES('job-watch-2','job','bob','watch',2,'`echo hit; echo hit; exit 3` printed: hit','{"line":"hit","pattern":"hit","offset":4}',1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.558,1790000000.558,NULL);
INSERT INTO "deliveries" VALUES('large-done-1','large','bob','done',1,NULL,NULL,1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.055,1790000000.055,NULL);
INSERT INTO "deliveries" VALUES('leased-done-1','leased','ann','done',1,NULL,NULL,1,'leased','chat',NULL,1,1790000000.574,1790000000.573,'176dd131e0094895bdb8b1bb773ed648','064973dc8c5d4fd88c79326d7cc20ded',1790000030.574,NULL,NULL,NULL,1790000000.573,1790000000.574,NULL);
INSERT INTO "deliveries" VALUES('stored-done-1','stored','bob','done',1,NULL,NULL,1,'stored',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.052,1790000000.052,NULL);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, payload TEXT NOT NULL, at REAL NOT NULL
);
INSERT INTO "events" VALUES(1,'outbox',1,'dead','{"delivery":"dead-done-1","session":"ann","channel":"chat","attempts":2,"why":"`send` raised ConnectionError: nobody answers"}',1790000000.042);
INSERT INTO "events" VALUES(2,'outbox',2,'expired','{"delivery":"expired-done-1","session":"bob","was":"stored","attempts":0}',1790000000.516);
INSERT INTO "events" VALUES(3,'job:job',1,'created','{"command":"echo hit; echo hit; exit 3","cwd":"/srv/app","env":[],"notify":true,"watch":[{"text":"hit"}],"on_shutdown":"survive","timeout":null,"owner":"176dd131e0094895bdb8b1bb773ed648"}',1790000000.525);
INSERT INTO "events" VALUES(4,'job:job',2,'ended','{"code":3,"reason":null,"hits":2}',1790000000.558);
INSERT INTO "events" VALUES(5,'job:running',1,'created','{"command":"exec sleep 300","cwd":"/srv/app","env":[],"notify":true,"watch":[],"on_shutdown":"survive","timeout":null,"owner":"176dd131e0094895bdb8b1bb773ed648"}',1790000000.559);
CREATE TABLE history (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL, what TEXT NOT NULL, at REAL NOT NULL,
    branch TEXT, step INTEGER, name TEXT, data TEXT, kind TEXT, key TEXT, args TEXT, color TEXT, code TEXT,
    attempt INTEGER, outcome TEXT, began_at REAL, wake_at REAL, note TEXT, done_by TEXT,
    PRIMARY KEY (run_id, seq, sub)
) WITHOUT ROWID;
INSERT INTO "history" VALUES('cancelled',1,0,'run begun',1790000000.523,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('cancelled',2,0,'waiting',1790000000.523,'',1,'go',NULL,'wait','cancelled:1:go','[null]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('cancelled',3,0,'cancelled',1790000000.523,'',1,'go',NULL,'wait',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('cancelled',4,0,'run ended',1790000000.524,NULL,NULL,NULL,'{"outcome": "cancelled", "type": "RunCancelledError", "module": "troth.runtime.engine.errors", "message": "The run ''cancelled'' was cancelled.", "place": "/srv/app/make_v5.py:18", "line": "def hold(): return (yield Wait(\"go\"))", "function": "hold", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 121, in play\n    ask = decision.send(answer) if failure is None else decision.throw(failure)\n                                                        ^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 18, in hold\n    def hold(): return (yield Wait(\"go\"))\n                        ^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 142, in play\n    answer = yield from perform(self, ask, _make(Place, (run_id, branch, seq)), record)\n             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/timers_and_signals.py\", line 108, in perform_wait\n    raise branch.cancelled(ask, place)\ntroth.runtime.engine.errors.RunCancelledError: The run ''cancelled'' was cancelled.\n", "origin": "1"}','cancelled',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('dead',1,0,'run begun',1790000000.029,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('dead',2,0,'begun',1790000000.0296,'',1,'give',NULL,'step','dead:1:give','["x"]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('dead',3,0,'done',1790000000.03,'',1,'give','"x"',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('dead',4,0,'run ended',1790000000.03,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('delivered',1,0,'run begun',1790000000.017,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('delivered',2,0,'begun',1790000000.018,'',1,'give',NULL,'step','delivered:1:give','[{"n":1}]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('delivered',3,0,'done',1790000000.018,'',1,'give','{"n":1}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('delivered',4,0,'run ended',1790000000.018,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('expired',1,0,'run begun',1790000000.055,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('expired',2,0,'begun',1790000000.055,'',1,'give',NULL,'step','expired:1:give','["z"]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('expired',3,0,'done',1790000000.055,'',1,'give','"z"',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('expired',4,0,'run ended',1790000000.055,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('failed',1,0,'run begun',1790000000.053,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('failed',2,0,'begun',1790000000.053,'',1,'give',NULL,'step','failed:1:give','["boom"]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('failed',2,1,'attempt',1790000000.053,'',1,'give','{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "boom", "place": "/srv/app/make_v5.py:16", "line": "if v==\"boom\": raise ValueError(\"boom\")", "function": "value_of", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/invoke/worker_pool.py\", line 66, in run\n    self.value = self._context.run(self._call)\n                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 16, in value_of\n    if v==\"boom\": raise ValueError(\"boom\")\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: boom\n"}','step',NULL,NULL,NULL,NULL,1,'failed',1790000000.053,NULL,NULL,NULL);
INSERT INTO "history" VALUES('failed',3,0,'failed',1790000000.053,'',1,'give','{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "boom", "place": "/srv/app/make_v5.py:16", "line": "if v==\"boom\": raise ValueError(\"boom\")", "function": "value_of", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/invoke/worker_pool.py\", line 66, in run\n    self.value = self._context.run(self._call)\n                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 16, in value_of\n    if v==\"boom\": raise ValueError(\"boom\")\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: boom\n"}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('failed',4,0,'run ended',1790000000.054,NULL,NULL,NULL,'{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "boom", "place": "/srv/app/make_v5.py:16", "line": "if v==\"boom\": raise ValueError(\"boom\")", "function": "value_of", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/invoke/worker_pool.py\", line 66, in run\n    self.value = self._context.run(self._call)\n                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 16, in value_of\n    if v==\"boom\": raise ValueError(\"boom\")\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: boom\n", "step": "give", "at": "1"}','failed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('large',1,0,'run begun',1790000000.054,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('large',2,0,'begun',1790000000.055,'',1,'give',NULL,'step','large:1:give','["yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('large',3,0,'done',1790000000.055,'',1,'give','"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('large',4,0,'run ended',1790000000.055,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('leased',1,0,'run begun',1790000000.572,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('leased',2,0,'begun',1790000000.573,'',1,'give',NULL,'step','leased:1:give','[7]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('leased',3,0,'done',1790000000.573,'',1,'give','7',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('leased',4,0,'run ended',1790000000.573,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('stored',1,0,'run begun',1790000000.052,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('stored',2,0,'begun',1790000000.052,'',1,'give',NULL,'step','stored:1:give','["kept"]','sync',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('stored',3,0,'done',1790000000.052,'',1,'give','"kept"',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('stored',4,0,'run ended',1790000000.052,NULL,NULL,NULL,NULL,'completed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('waiting',1,0,'run begun',1790000000.522,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('waiting',2,0,'waiting',1790000000.523,'',1,'go',NULL,'wait','waiting:1:go','[null]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE kills (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, reason TEXT NOT NULL, substitute TEXT,
    at REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 1, answer TEXT
) WITHOUT ROWID;
CREATE TABLE leases (resource TEXT PRIMARY KEY, owner TEXT NOT NULL, token TEXT NOT NULL, taken_at REAL NOT NULL)
WITHOUT ROWID;
INSERT INTO "leases" VALUES('run:waiting','92c9ca0aa6da46fe8b687e7af5ff48f7','7bffe1b5d2cb4048a6065c81d48ba422',1790000000.522);
CREATE TABLE members (
    session TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, ring INTEGER NOT NULL, score REAL NOT NULL,
    vouched TEXT NOT NULL, actions TEXT NOT NULL, history TEXT, joined_at REAL NOT NULL, left_at REAL,
    elevated INTEGER, elevated_until REAL, tokens REAL, tokens_at REAL NOT NULL,
    breach REAL NOT NULL DEFAULT 0, breach_at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (session, agent)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox_counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "outbox_counts" VALUES('dead',1);
INSERT INTO "outbox_counts" VALUES('delivered',1);
INSERT INTO "outbox_counts" VALUES('expired',1);
INSERT INTO "outbox_counts" VALUES('promised',13);
CREATE TABLE owners (
    id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL, pid_started INTEGER NOT NULL,
    beat_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "owners" VALUES('176dd131e0094895bdb8b1bb773ed648','elsewhere/boot/pid',22151,202327,1790000000.0);
INSERT INTO "owners" VALUES('92c9ca0aa6da46fe8b687e7af5ff48f7','elsewhere/boot/pid',22151,202327,1790000000.017);
CREATE TABLE promises (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, work TEXT NOT NULL, subject TEXT NOT NULL, title TEXT NOT NULL,
    channel TEXT, home TEXT, state TEXT NOT NULL, result TEXT, error TEXT, retention REAL,
    created_at REAL NOT NULL, settled_at REAL, expires_at REAL, expired_at REAL
) WITHOUT ROWID;
INSERT INTO "promises" VALUES('cancelled','bob','run','cancelled','hold',NULL,NULL,'cancelled',NULL,'{"outcome": "cancelled", "type": "RunCancelledError", "module": "troth.runtime.engine.errors", "message": "The run ''cancelled'' was cancelled.", "place": "/srv/app/make_v5.py:18", "line": "def hold(): return (yield Wait(\"go\"))", "function": "hold", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 121, in play\n    ask = decision.send(answer) if failure is None else decision.throw(failure)\n                                                        ^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 18, in hold\n    def hold(): return (yield Wait(\"go\"))\n                        ^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 142, in play\n    answer = yield from perform(self, ask, _make(Place, (run_id, branch, seq)), record)\n             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/timers_and_signals.py\", line 108, in perform_wait\n    raise branch.cancelled(ask, place)\ntroth.runtime.engine.errors.RunCancelledError: The run ''cancelled'' was cancelled.\n", "origin": "1"}',604800.0,1790000000.522,1790000000.524,1790604800.524,NULL);
INSERT INTO "promises" VALUES('dead','ann','run','dead','give','chat',NULL,'done','"x"',NULL,604800.0,1790000000.029,1790000000.03,1790604800.03,NULL);
INSERT INTO "promises" VALUES('delivered','ann','run','delivered','give','chat',NULL,'done','{"n":1}',NULL,604800.0,1790000000.016,1790000000.018,1790604800.018,NULL);
INSERT INTO "promises" VALUES('expired','bob','run','expired','give',NULL,NULL,'expired',NULL,NULL,0.05,1790000000.055,1790000000.055,NULL,1790000000.516);
INSERT INTO "promises" VALUES('failed','bob','run','failed','give',NULL,NULL,'failed',NULL,'{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "boom", "place": "/srv/app/make_v5.py:16", "line": "if v==\"boom\": raise ValueError(\"boom\")", "function": "value_of", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/invoke/worker_pool.py\", line 66, in run\n    self.value = self._context.run(self._call)\n                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 16, in value_of\n    if v==\"boom\": raise ValueError(\"boom\")\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: boom\n", "step": "give", "at": "1"}',604800.0,1790000000.053,1790000000.054,1790604800.054,NULL);
INSERT INTO "promises" VALUES('job','bob','job','job','`echo hit; echo hit; exit 3`',NULL,NULL,'failed','{"exit_code": 3, "reason": null, "seconds": 0.1, "output": "hit\nhit\n", "output_bytes": 8, "output_cut": 0, "output_file": "/srv/app/v5/x.db.jobs/job/output"}','{"type": "JobFailedError", "message": "`echo hit; echo hit; exit 3` ended with exit code 3."}',604800.0,1790000000.525,1790000000.558,1790604800.558,NULL);
INSERT INTO "promises" VALUES('large','bob','run','large','give',NULL,NULL,'done','"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"',NULL,NULL,1790000000.054,1790000000.055,NULL,NULL);
INSERT INTO "promises" VALUES('leased','ann','run','leased','give','chat',NULL,'done','7',NULL,604800.0,1790000000.572,1790000000.573,1790604800.573,NULL);
INSERT INTO "promises" VALUES('running','bob','job','running','`exec sleep 300`',NULL,NULL,'open',NULL,NULL,604800.0,1790000000.559,NULL,NULL,NULL);
INSERT INTO "promises" VALUES('stored','bob','run','stored','give',NULL,NULL,'done','"kept"',NULL,604800.0,1790000000.052,1790000000.052,1790604800.052,NULL);
INSERT INTO "promises" VALUES('waiting','bob','run','waiting','hold',NULL,NULL,'open',NULL,NULL,604800.0,1790000000.522,NULL,NULL,NULL);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, decision TEXT NOT NULL, label TEXT, state TEXT NOT NULL, args TEXT NOT NULL,
    result TEXT, error TEXT, code TEXT, parent TEXT, forked_from TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0, waiting_for TEXT, wake_at REAL,
    created_at REAL NOT NULL, updated_at REAL NOT NULL, finished_at REAL
, ending TEXT);
INSERT INTO "runs" VALUES('delivered','give','give','completed','[{"n":1}]','{"n":1}',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.017,1790000000.018,1790000000.018,NULL);
INSERT INTO "runs" VALUES('dead','give','give','completed','["x"]','"x"',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.029,1790000000.03,1790000000.03,NULL);
INSERT INTO "runs" VALUES('stored','give','give','completed','["kept"]','"kept"',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.052,1790000000.052,1790000000.052,NULL);
INSERT INTO "runs" VALUES('failed','give','give','failed','["boom"]',NULL,'{"outcome": "failed", "type": "ValueError", "module": "builtins", "message": "boom", "place": "/srv/app/make_v5.py:16", "line": "if v==\"boom\": raise ValueError(\"boom\")", "function": "value_of", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/invoke/worker_pool.py\", line 66, in run\n    self.value = self._context.run(self._call)\n                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 16, in value_of\n    if v==\"boom\": raise ValueError(\"boom\")\n                  ^^^^^^^^^^^^^^^^^^^^^^^^\nValueError: boom\n", "step": "give", "at": "1"}',NULL,NULL,NULL,0,NULL,NULL,1790000000.053,1790000000.054,1790000000.054,NULL);
INSERT INTO "runs" VALUES('large','give','give','completed','["yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"]','"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.054,1790000000.055,1790000000.055,NULL);
INSERT INTO "runs" VALUES('expired','give','give','completed','["z"]','"z"',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.055,1790000000.055,1790000000.055,NULL);
INSERT INTO "runs" VALUES('waiting','hold','hold','waiting','[]',NULL,NULL,NULL,NULL,NULL,0,'signal ''go''',NULL,1790000000.522,1790000000.523,NULL,NULL);
INSERT INTO "runs" VALUES('cancelled','hold','hold','cancelled','[]',NULL,'{"outcome": "cancelled", "type": "RunCancelledError", "module": "troth.runtime.engine.errors", "message": "The run ''cancelled'' was cancelled.", "place": "/srv/app/make_v5.py:18", "line": "def hold(): return (yield Wait(\"go\"))", "function": "hold", "traceback": "Traceback (most recent call last):\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 121, in play\n    ask = decision.send(answer) if failure is None else decision.throw(failure)\n                                                        ^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/app/make_v5.py\", line 18, in hold\n    def hold(): return (yield Wait(\"go\"))\n                        ^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/branch.py\", line 142, in play\n    answer = yield from perform(self, ask, _make(Place, (run_id, branch, seq)), record)\n             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File \"/srv/lib/troth/runtime/engine/interpreter/timers_and_signals.py\", line 108, in perform_wait\n    raise branch.cancelled(ask, place)\ntroth.runtime.engine.errors.RunCancelledError: The run ''cancelled'' was cancelled.\n", "origin": "1"}',NULL,NULL,NULL,1,NULL,NULL,1790000000.523,1790000000.524,1790000000.524,NULL);
INSERT INTO "runs" VALUES('leased','give','give','completed','[7]','7',NULL,NULL,NULL,NULL,0,NULL,NULL,1790000000.572,1790000000.573,1790000000.573,NULL);
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
CREATE INDEX history_waits ON history (run_id, name, seq, sub) WHERE kind = 'wait';
CREATE INDEX runs_by_word ON runs (substr(decision, 1, instr(decision, ':')), coalesce(ending, state), created_at, id)
    WHERE instr(decision, ':') > 0;
CREATE INDEX asks_open ON asks (session, asked_at) WHERE state = 'open';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',5);
COMMIT;
