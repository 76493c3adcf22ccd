"""Every statement of this store that is not the same for SQLite, by name.

Those that both databases understand stand where both use them (`promise_rows`, `session_rows`); `dialect` puts the
marks of psycopg in them. Three rules hold for what is written here. A row that a commit relies on is locked when it is
read, because other workers commit at the same time. The number of a new entry is found by the statement that writes
it, under such a lock, so numbers have no gaps. Whether an owner is alive is decided by the clock of the database.
"""

from troth.runtime.store.rows.deliveries import DELIVERY
from troth.runtime.store.rows.runs import EVENT, HISTORY, OWNER, RUN, SIGNAL

# ruff: noqa: S608, S105  nothing but names of columns is put together here, and a token is no password

# The database itself

NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE writers SET transaction = pg_current_xact_id()::text, "
    "at = extract(epoch FROM clock_timestamp()) WHERE id = '{writer}' RETURNING transaction"
)
"""Begin, and note the number of the transaction in the row of this connection: both in one round trip. Where the answer
to COMMIT is lost, that row tells whether it was kept. The number alone does not: a server that has crashed gives the
numbers of transactions that left nothing behind to others."""
ADD_WRITER = (
    "INSERT INTO writers (id, transaction, at) VALUES (%s, pg_current_xact_id()::text, "
    "extract(epoch FROM clock_timestamp())) RETURNING transaction"
)
REMOVE_WRITER = "DELETE FROM writers WHERE id = %s"
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE at < extract(epoch FROM clock_timestamp()) - 86400"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT unit"
RELEASE = "RELEASE SAVEPOINT unit"
ROLLBACK_TO = "ROLLBACK TO SAVEPOINT unit"
IS_IN_PROGRESS = "SELECT pg_xact_status(%s::text::xid8) = 'in progress'"
WAS_KEPT = "SELECT EXISTS (SELECT 1 FROM writers WHERE id = %s AND transaction = %s)"
SHORT_PATIENCE = "SET LOCAL lock_timeout = '250ms'"
SET_LIMIT = "SET LOCAL {name} = '{value}'; "
NOTIFY = "SELECT pg_notify(%s, %s)"

LISTEN = "LISTEN {channel}"
SERVER_PROCESS = "SELECT pg_backend_pid()"
"""The server's own number of this session's process. A pooler tells its clients another one."""

# The tables

LOCK_STORE = "SELECT pg_advisory_xact_lock(1414680404, hashtext(%s))"
"""Whoever makes the tables, changes them, or moves a file into them, does so alone."""
TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %s AND c.relkind = 'r' ORDER BY 1"
)
VERSION_OF = "SELECT max(version) FROM {table}"
SET_VERSION = "INSERT INTO troth_version (version) VALUES (%s)"
HAS_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
MAKE_SCHEMA = "CREATE SCHEMA {schema}"
MAKE_VERSION = "CREATE TABLE {table} (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
IN_SCHEMA = "SET LOCAL search_path = {schema}"

# A file that is moved here

MOVED_ROWS = "SELECT {columns} FROM {table} ORDER BY {key}"
MOVED_OUTBOX_COUNTS = "SELECT name, sum(count)::bigint FROM outbox_counts GROUP BY name ORDER BY name"
MOVED_STATE_COUNTS = "SELECT kind, word, sum(count)::bigint FROM state_counts GROUP BY kind, word ORDER BY kind, word"
EMPTY = "DELETE FROM {table}"
COPY_IN = "COPY {table} ({columns}) FROM STDIN"
COUNT_STREAMS = "INSERT INTO streams (stream, last) SELECT stream, max(seq) FROM events GROUP BY stream"
GO_ON_COUNTING = (
    "SELECT setval(pg_get_serial_sequence({place}, {column}), max({name})) FROM {table} HAVING max({name}) > 0"
)

# Runs

ADD_RUN = (
    "INSERT INTO runs (id, decision, label, state, args, code, parent, forked_from, created_at, updated_at) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING RETURNING 1"
)
RUN_BEGUN = "INSERT INTO history (run_id, seq, sub, what, at) VALUES (%s, 1, 0, 'run begun', %s)"
SET_RUN_STATE = "UPDATE runs SET state = %s, waiting_for = %s, wake_at = %s, updated_at = %s WHERE id = %s"
FINISH_RUN = (
    "UPDATE runs SET state = %s, result = %s, error = %s, ending = %s, waiting_for = NULL, wake_at = NULL, "
    "updated_at = %s, finished_at = %s WHERE id = %s"
)
REOPEN_RUN = (
    "UPDATE runs SET state = 'running', result = NULL, error = NULL, ending = NULL, cancel_requested = 0, "
    "finished_at = NULL, updated_at = %s WHERE id = %s AND state IN ('failed', 'cancelled') AND finished_at = %s "
    "RETURNING 1"
)
REQUEST_CANCEL = (
    "UPDATE runs SET cancel_requested = 1, updated_at = %s WHERE id = %s AND state IN ('running', 'waiting') "
    "RETURNING 1"
)
LOCK_RUN = "SELECT 1 FROM runs WHERE id = %s FOR NO KEY UPDATE"
STATE_OF = "SELECT state FROM runs WHERE id = %s FOR NO KEY UPDATE"
ASKED_OF = "SELECT decision, args, state FROM runs WHERE id = %s FOR NO KEY UPDATE"
ENDING_OF = "SELECT state, result, error FROM runs WHERE id = %s"
"""Not locked: whoever waits for another run looks again when there is news of it."""

FIND_RUN = f"SELECT {RUN.sql} FROM runs WHERE id = %s"
FIND_RUNS = f"SELECT {RUN.sql} FROM runs"
NEWEST_FIRST = "ORDER BY created_at DESC, id DESC LIMIT %s"
OF_FAMILY = "strpos(decision, ':') > 0 AND substr(decision, 1, strpos(decision, ':')) = %s"
OF_WORD = "coalesce(ending, state) = %s"
ARM = "SELECT * FROM ({}) AS arm"
RUN_WORDS = "SELECT DISTINCT word FROM state_counts WHERE kind >= 'run/' AND kind < 'run0'"
RUNS_OF_OWNERS = (
    f"SELECT {RUN.sql} FROM leases JOIN runs ON runs.id = substr(resource, 5) "
    "WHERE owner = ANY(%s) AND substr(resource, 1, 4) = 'run:'"
)
SIGNALLED = (
    "SELECT DISTINCT r.id FROM signals s JOIN runs r ON r.id = s.run_id "
    "WHERE s.taken_by IS NULL AND r.state = 'waiting'"
)
CANCELLING = "SELECT id FROM runs WHERE cancel_requested = 1 AND state IN ('running', 'waiting')"
_UNHELD = (
    "FROM runs r LEFT JOIN leases l ON l.resource = 'run:' || r.id WHERE r.state IN ('running', 'waiting') "
    "AND (l.owner IS NULL OR l.owner <> ALL(%s))"
)
ORPHANS = f"SELECT r.id, r.decision {_UNHELD} AND r.decision = ANY(%s) ORDER BY r.created_at, r.id"
UNHELD = f"SELECT r.id {_UNHELD} AND substr(r.decision, 1, %s) = %s ORDER BY r.created_at, r.id"
OPEN_DECISIONS = (
    "SELECT DISTINCT decision FROM runs WHERE state IN ('running', 'waiting') AND substr(decision, 1, %s) = %s "
    "ORDER BY decision"
)
UNHELD_PROMISED = (
    "SELECT p.id FROM runs r JOIN promises p ON p.id = r.id LEFT JOIN leases l ON l.resource = 'run:' || r.id "
    "WHERE r.state IN ('running', 'waiting') AND p.work = 'run' AND (l.owner IS NULL OR l.owner <> ALL(%s)) "
    "AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.promise = p.number AND d.kind = 'done') ORDER BY p.number"
)

# The history of a run

_LAST = (
    "(SELECT 1) one LEFT JOIN LATERAL (SELECT seq, sub FROM history WHERE run_id = %s "
    "ORDER BY seq DESC, sub DESC LIMIT 1) last ON true"
)
_TYPES = (
    "%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::float8, %s::float8, %s::text"
)
_COLUMNS = "run_id, seq, sub, what, at, branch, step, name"
_MORE = "data, kind, key, args, color, code, attempt, outcome, began_at, wake_at, note"
_PLACE = "%s::text, %s::float8, %s::text, %s::bigint, %s::text"
APPEND_SHOWN = (
    f"INSERT INTO history ({_COLUMNS}, {_MORE}) SELECT %s, coalesce(last.seq, 0) + 1, 0, {_PLACE}, {_TYPES} "
    f"FROM {_LAST}"
)
APPEND_HIDDEN = (
    f"INSERT INTO history ({_COLUMNS}, {_MORE}) "
    f"SELECT %s, coalesce(last.seq, 0), coalesce(last.sub, -1) + 1, {_PLACE}, {_TYPES} FROM {_LAST}"
)
SETTLE_STEP = (
    f"INSERT INTO history ({_COLUMNS}, data) SELECT %s, coalesce(last.seq, 0) + 1, 0, {_PLACE}, %s::text FROM {_LAST}"
)
BEGIN_HELD_STEP = (
    "WITH held AS (SELECT r.id, r.cancel_requested FROM leases l JOIN runs r ON r.id = %s "
    "WHERE l.resource = %s AND l.token = %s FOR NO KEY UPDATE), "
    f"written AS (INSERT INTO history ({_COLUMNS}, kind, key, args, color, code) "
    "SELECT held.id, coalesce(last.seq, 0) + 1, 0, 'begun', %s::float8, %s::text, %s::bigint, %s::text, 'step', "
    "%s::text, %s::text, %s::text, %s::text FROM held LEFT JOIN LATERAL (SELECT seq, sub FROM history "
    "WHERE run_id = held.id ORDER BY seq DESC, sub DESC LIMIT 1) last ON true RETURNING 1) "
    "SELECT held.cancel_requested FROM held JOIN written ON true"
)
"""The intent of the next step, if the lease is still ours, and whether the run is to be cancelled: in one statement."""

SETTLE_AND_BEGIN = (
    "WITH held AS (SELECT r.id, r.cancel_requested FROM leases l JOIN runs r ON r.id = %s "
    "WHERE l.resource = %s AND l.token = %s FOR NO KEY UPDATE), "
    "last AS (SELECT held.id, coalesce((SELECT seq FROM history WHERE run_id = held.id "
    "ORDER BY seq DESC, sub DESC LIMIT 1), 0) AS seq FROM held), "
    f"written AS (INSERT INTO history ({_COLUMNS}, data, kind, key, args, color, code) "
    f"SELECT last.id, last.seq + 1, 0, {_PLACE}, %s::text, NULL, NULL, NULL, NULL, NULL FROM last UNION ALL "
    "SELECT last.id, last.seq + 2, 0, 'begun', %s::float8, %s::text, %s::bigint, %s::text, NULL, 'step', %s::text, "
    "%s::text, %s::text, %s::text FROM last RETURNING 1) SELECT held.cancel_requested FROM held"
)
"""The answer of a step and the intent of the next, if the lease is still ours: an ordinary commit in one statement."""

ORDINARY_STEPS = (
    "WITH noted AS (UPDATE writers SET transaction = %s, at = extract(epoch FROM clock_timestamp()) WHERE id = %s "
    "RETURNING set_config('lock_timeout', coalesce(%s::text, current_setting('lock_timeout')), true)), "
    "steps AS MATERIALIZED (SELECT * FROM json_to_recordset(%s::json) AS (i bigint, r text, o text, t text, "
    "w text, a float8, b text, s bigint, n text, d text, "
    "aa float8, bb text, ss bigint, nn text, k text, g text, c text, v text)), "
    "held AS MATERIALIZED (SELECT steps.i, run.id, run.cancel_requested FROM noted CROSS JOIN steps "
    "CROSS JOIN LATERAL (SELECT l.resource FROM leases l WHERE l.resource = steps.o AND l.token = steps.t "
    "FOR NO KEY UPDATE) lease "
    "CROSS JOIN LATERAL (SELECT runs.id, runs.cancel_requested FROM runs WHERE runs.id = steps.r "
    "FOR NO KEY UPDATE) run), "
    "last AS (SELECT steps.*, coalesce((SELECT seq FROM history WHERE run_id = held.id "
    "ORDER BY seq DESC, sub DESC LIMIT 1), 0) AS seq FROM held JOIN steps ON steps.i = held.i), "
    f"written AS (INSERT INTO history ({_COLUMNS}, data, kind, key, args, color, code) "
    "SELECT r, seq + 1, 0, w, a, b, s, n, d, NULL, NULL, NULL, NULL, NULL FROM last WHERE w IS NOT NULL UNION ALL "
    "SELECT r, seq + CASE WHEN w IS NULL THEN 1 ELSE 2 END, 0, 'begun', aa, bb, ss, nn, NULL, 'step', k, g, c, v "
    "FROM last RETURNING 1) SELECT held.i::text, held.cancel_requested::text FROM noted LEFT JOIN held ON true"
)
"""Ordinary commits of several runs: for each the answer of a step, if there is one, and the intent of the next, if its
lease is still ours. A statement is a transaction by itself, so this is one round trip. No row is answered where the row
of this connection is gone, and then nothing is written either: that is how a statement is called off whose answer was
lost on the way (`CALL_OFF`). Runs and leases are looked up one by one; to join them would read whole tables."""
LIMIT_LOCKS = "set_config('lock_timeout', '{patience}', true)"
ORDINARY_STEP = (
    "WITH noted AS (UPDATE writers SET transaction = %s, at = extract(epoch FROM clock_timestamp()) "
    "WHERE id = '{writer}' RETURNING {limit}), "
    "held AS MATERIALIZED (SELECT run.id, run.cancel_requested FROM noted "
    "CROSS JOIN LATERAL (SELECT l.resource FROM leases l WHERE l.resource = %s AND l.token = %s "
    "FOR NO KEY UPDATE) lease "
    "CROSS JOIN LATERAL (SELECT runs.id, runs.cancel_requested FROM runs WHERE runs.id = %s "
    "FOR NO KEY UPDATE) run), "
    "last AS MATERIALIZED (SELECT held.id, coalesce((SELECT seq FROM history WHERE run_id = held.id "
    "ORDER BY seq DESC, sub DESC LIMIT 1), 0) AS seq FROM held), "
    f"written AS (INSERT INTO history ({_COLUMNS}, data, kind, key, args, color, code) "
    f"SELECT last.id, last.seq + 1, 0, {_PLACE}, %s::text, NULL, NULL, NULL, NULL, NULL FROM last UNION ALL "
    "SELECT last.id, last.seq + 2, 0, 'begun', %s::float8, %s::text, %s::bigint, %s::text, NULL, 'step', %s::text, "
    "%s::text, %s::text, %s::text FROM last RETURNING 1) "
    "SELECT held.cancel_requested::text FROM noted LEFT JOIN held ON true"
)
"""`ORDINARY_STEPS` for one step with an answer before it, over the connection `writer`: there is no list to be written
and read, which is a third."""

APPEND_HELD = (
    "WITH mine AS MATERIALIZED (SELECT set_config('lock_timeout', coalesce(%s::text, current_setting('lock_timeout')), "
    "true) FROM writers WHERE id = %s FOR NO KEY UPDATE), "
    "held AS MATERIALIZED (SELECT 1 FROM mine CROSS JOIN LATERAL (SELECT l.resource FROM leases l "
    "WHERE l.resource = %s AND l.token = %s FOR NO KEY UPDATE) lease), "
    "counted AS (UPDATE streams SET last = last + %s FROM held WHERE stream = %s AND last = %s RETURNING stream), "
    "noted AS (UPDATE writers SET transaction = %s, at = extract(epoch FROM clock_timestamp()) FROM counted "
    "WHERE id = %s RETURNING counted.stream), "
    "written AS (INSERT INTO events (stream, seq, kind, payload, at) SELECT noted.stream, %s + entry.number, "
    "entry.kind, entry.payload, entry.at FROM noted CROSS JOIN unnest(%s::text[], %s::text[], %s::float8[]) "
    "WITH ORDINALITY AS entry (kind, payload, at, number) ORDER BY entry.number RETURNING 1) "
    "SELECT (EXISTS (SELECT 1 FROM noted))::text FROM mine"
)
"""Entries of one stream, if the lease is still ours and the stream is as long as it is thought to be; answers whether
it was. No row is answered where the row of this connection is gone, as with `ORDINARY_STEPS`; only what was written is
noted there. That row is locked first, so the transaction has its number before an entry has one."""
APPEND_ONE_HELD = (
    "WITH mine AS MATERIALIZED (SELECT {limit} FROM writers WHERE id = '{writer}' FOR NO KEY UPDATE), "
    "held AS MATERIALIZED (SELECT 1 FROM mine CROSS JOIN LATERAL (SELECT l.resource FROM leases l "
    "WHERE l.resource = %s AND l.token = %s FOR NO KEY UPDATE) lease), "
    "counted AS (UPDATE streams SET last = last + 1 FROM held WHERE stream = %s AND last = %s RETURNING stream, last), "
    "noted AS (UPDATE writers SET transaction = %s, at = extract(epoch FROM clock_timestamp()) FROM counted "
    "WHERE id = '{writer}' RETURNING counted.stream, counted.last), "
    "written AS (INSERT INTO events (stream, seq, kind, payload, at) "
    "SELECT noted.stream, noted.last, %s, %s, %s FROM noted RETURNING 1) "
    "SELECT (EXISTS (SELECT 1 FROM noted))::text FROM mine"
)
"""`APPEND_HELD` for one entry, over the connection `writer`: nearly every one."""
CALL_OFF = "DELETE FROM writers WHERE id = %s RETURNING transaction"
"""Waits for a statement that is under way over that connection; one that comes later writes nothing."""

_COPIED = "what, at, branch, step, name, data, kind, key, args, color, code, attempt, outcome, began_at, wake_at, note"
COPY_STEPS = (
    "WITH picked AS (SELECT *, sum(CASE WHEN sub = 0 AND seq > 0 THEN 1 ELSE 0 END) OVER (ORDER BY seq, sub) AS number "
    "FROM history WHERE run_id = %s AND ((branch = '' AND step < %s) "
    "OR (branch <> '' AND split_part(branch, '.', 1)::bigint < %s))) "
    f"INSERT INTO history (run_id, seq, sub, {_COPIED}, done_by) SELECT %s, %s + number, "
    "row_number() OVER (PARTITION BY number ORDER BY seq, sub) - (CASE WHEN number > 0 THEN 1 ELSE 0 END), "
    f"{_COPIED}, coalesce(done_by, %s) FROM picked"
)
LAST_ENTRY = "SELECT coalesce(max(seq), 0) FROM history WHERE run_id = %s"
WHOLE_HISTORY = f"SELECT {HISTORY.sql} FROM history WHERE run_id = %s ORDER BY seq, sub"
HISTORY_AFTER = f"SELECT {HISTORY.sql} FROM history WHERE run_id = %s AND seq > %s AND sub = 0 ORDER BY seq LIMIT %s"
WAITS = (
    "SELECT what, branch, step, wake_at FROM history WHERE run_id = %s AND kind = 'wait' AND name = %s "
    "ORDER BY seq, sub"
)

# Signals

SEND_SIGNAL = (
    "INSERT INTO signals (run_id, name, payload, key, sent_at) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (run_id, key) WHERE key IS NOT NULL DO NOTHING RETURNING 1"
)
TAKE_SIGNAL = (
    "UPDATE signals SET taken_by = %s WHERE id = (SELECT id FROM signals WHERE run_id = %s AND name = %s "
    "AND taken_by IS NULL AND sent_at < %s ORDER BY id LIMIT 1 FOR UPDATE) RETURNING id, payload"
)
GIVE_SIGNALS_BACK = "UPDATE signals SET taken_by = NULL WHERE run_id = %s AND taken_by = %s"
COUNT_UNTAKEN = (
    "SELECT count(*) FROM signals WHERE run_id = %s AND name = %s AND taken_by IS NULL AND sent_at < %s::float8"
)
SIGNALS_OF = f"SELECT {SIGNAL.sql} FROM signals WHERE run_id = %s ORDER BY id"

# Streams: a row for each counts its entries, and is locked by whoever appends until that is kept

APPEND_EVENT = (
    "WITH counted AS (INSERT INTO streams (stream, last) VALUES (%s, 1) "
    "ON CONFLICT (stream) DO UPDATE SET last = streams.last + 1 RETURNING last) "
    "INSERT INTO events (stream, seq, kind, payload, at) SELECT %s, counted.last, %s, %s, %s FROM counted RETURNING seq"
)
LOCK_STREAM = (
    "INSERT INTO streams (stream, last) VALUES (%s, 0) ON CONFLICT (stream) DO UPDATE SET last = streams.last "
    "RETURNING last"
)
LAST_EVENT = "SELECT last FROM streams WHERE stream = %s"
EVENTS_AFTER = f"SELECT {EVENT.sql} FROM events WHERE stream = %s AND seq > %s ORDER BY seq"
EVENTS_PAGE = f"{EVENTS_AFTER} LIMIT %s"
RECENT_STREAMS = (
    "SELECT stream FROM events WHERE stream >= %s AND stream < %s GROUP BY stream ORDER BY max(id) DESC LIMIT %s"
)

TRIM_EVENTS = "DELETE FROM events WHERE stream = %s AND seq <= %s"
SET_TRIMMED = (
    "INSERT INTO trimmed (stream, last) VALUES (%s, %s) ON CONFLICT (stream) DO UPDATE SET last = excluded.last"
)
TRIMMED = "SELECT last FROM trimmed WHERE stream = %s"
FOLD_COUNTS = (
    "WITH gone AS (DELETE FROM state_counts WHERE part <> 0 AND part NOT IN (SELECT pid FROM pg_stat_activity) "
    "RETURNING kind, word, count), summed AS (SELECT kind, word, sum(count)::bigint AS count FROM gone "
    "GROUP BY kind, word ORDER BY kind, word) INSERT INTO state_counts (kind, word, part, count) "
    "SELECT kind, word, 0, count FROM summed "
    "ON CONFLICT (kind, word, part) DO UPDATE SET count = state_counts.count + excluded.count"
)
"""Put the counts of connections that are gone together, so that there are as many rows as connections."""
NEWEST = "SELECT coalesce(max(id), 0), pg_is_in_recovery() FROM {table}"
WRITERS_OF = (
    "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted "
    "AND mode = 'RowExclusiveLock' AND relation = (SELECT tableoid FROM {table} LIMIT 1) "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Transactions of this database that have written to a table and are not over; their names are never used again."""
EVENTS_OF_ALL = (
    f"SELECT {EVENT.sql} FROM events WHERE id > %s AND id <= %s AND stream >= %s AND stream < %s ORDER BY id LIMIT %s"
)

# Owners and leases

_CLOCK = "coalesce(%s::float8, extract(epoch FROM clock_timestamp())::float8)"
ENROLL = (
    f"INSERT INTO owners (id, machine, pid, pid_started, beat_at) VALUES (%s, %s, %s, %s, {_CLOCK}) "
    "ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at"
)
BEAT = f"UPDATE owners SET beat_at = {_CLOCK} WHERE id = %s"
OWNERS = f"SELECT {OWNER.sql} FROM owners"
FIND_OWNER = f"{OWNERS} WHERE id = %s"
LEASES_OF = "SELECT resource FROM leases WHERE owner = %s"
RETIRE_LEASES = "DELETE FROM leases WHERE owner = %s"
RETIRE_OWNER = "DELETE FROM owners WHERE id = %s"
RENEW = "UPDATE leases SET token = %s, taken_at = %s WHERE resource = %s AND owner = %s RETURNING 1"
CLAIM = (
    "INSERT INTO leases AS held (resource, owner, token, taken_at) VALUES (%s, %s, %s, %s) ON CONFLICT (resource) "
    "DO UPDATE SET owner = excluded.owner, token = excluded.token, taken_at = excluded.taken_at "
    "WHERE NOT EXISTS (SELECT 1 FROM owners o WHERE o.id = held.owner AND (o.id = ANY(%s) "
    f"OR (o.beat_at >= {_CLOCK} - %s AND o.id <> ALL(%s)))) RETURNING 1"
)
"""Take a lease that is free, or whose owner is not alive any more: one statement, which waits for whoever is just
committing under the lease, and looks again after that."""

HOLDER_OF = (
    "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM leases l JOIN owners o ON o.id = l.owner "
    "WHERE l.resource = %s"
)
HOLD = "SELECT token FROM leases WHERE resource = %s FOR NO KEY UPDATE"
HOLD_RUN = (
    "SELECT l.token, r.cancel_requested FROM leases l JOIN runs r ON r.id = %s WHERE l.resource = %s FOR NO KEY UPDATE"
)
RELEASE_LEASE = "DELETE FROM leases WHERE resource = %s AND token = %s"

# The store itself

SET_META = "INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
GET_META = "SELECT value FROM meta WHERE key = %s"
LOCK_META = "SELECT value FROM meta WHERE key = %s FOR NO KEY UPDATE"

# Promises and deliveries

ADD_PROMISE = (
    "INSERT INTO promises (id, session, work, subject, title, channel, home, retention, created_at, is_open) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING RETURNING number"
)
NOTE_SHORTEST = (
    "INSERT INTO meta (key, value) SELECT %(key)s::text, %(value)s::text WHERE NOT EXISTS "
    "(SELECT 1 FROM meta WHERE key = %(key)s::text AND value::float8 <= %(value)s::text::float8) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE excluded.value::float8 < meta.value::float8"
)
"""Looks before it writes: to write would lock the one row for everybody who makes a promise."""
CLOSE_PROMISE = (
    "UPDATE promises SET is_open = 0 WHERE is_open = 1 AND work = %s AND subject = %s "
    "RETURNING id, number, session, channel, home, retention"
)
LOCK_PROMISE = "SELECT 1 FROM promises WHERE id = %s FOR NO KEY UPDATE"
LOCK_DELIVERY = (
    "SELECT 1 FROM deliveries WHERE promise = (SELECT number FROM promises WHERE id = %s) AND kind = %s AND seq = %s "
    "FOR NO KEY UPDATE"
)
LOCK_DUE = (
    "SELECT promise, kind, seq FROM deliveries WHERE state = 'due' AND channel = %s AND due_at <= %s "
    "AND (home IS NULL OR home = %s) AND session <> ALL(%s::text[]) ORDER BY due_at, created_at LIMIT %s "
    "FOR NO KEY UPDATE SKIP LOCKED"
)
LEASE_DELIVERY = (
    "UPDATE deliveries d SET state = 'leased', owner = %s, token = %s, leased_until = %s, updated_at = %s, "
    "attempt = d.attempt + 1, first_attempt_at = coalesce(d.first_attempt_at, %s) FROM promises p "
    f"WHERE p.number = d.promise AND d.promise = %s AND d.kind = %s AND d.seq = %s RETURNING {DELIVERY}"
)
LOCK_CHANNEL = "SELECT pg_advisory_xact_lock(1414680406, hashtext(%s))"
"""Whoever opens a channel sends what is stored for it; whoever finds that nobody serves it stores what is due. Neither
sees what the other is about to commit, so they take turns."""
SERVERS = (
    "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM channels c JOIN owners o ON o.id = c.owner "
    "WHERE c.name = %s"
)
LOCK_LEASED = (
    "SELECT promise, kind, seq, owner, attempt, leased_until, channel, attempts FROM deliveries "
    "WHERE state = 'leased' ORDER BY leased_until FOR NO KEY UPDATE SKIP LOCKED"
)
VOID_LEASE = (
    "UPDATE deliveries SET state = 'due', due_at = %s, updated_at = %s, attempts = %s, owner = NULL, token = NULL, "
    "leased_until = NULL WHERE promise = %s AND kind = %s AND seq = %s"
)
LOCK_EXPIRED = (
    "SELECT promise FROM deliveries WHERE expires_at IS NOT NULL AND expires_at <= %s ORDER BY expires_at LIMIT %s "
    "FOR NO KEY UPDATE SKIP LOCKED"
)
OFFER = (
    "UPDATE deliveries SET state = 'due', channel = %s, home = %s, due_at = least(created_at, %s::float8), "
    "updated_at = %s WHERE state = 'stored' AND session = %s AND declined_by IS DISTINCT FROM %s"
)
REVIVE = (
    "UPDATE deliveries SET state = 'due', due_at = least(created_at, %s::float8), updated_at = %s "
    "WHERE state = 'stored' AND channel = %s AND home IS NOT DISTINCT FROM %s::text "
    "AND declined_by IS DISTINCT FROM channel"
)
NEEDS_SWEEP = (
    "SELECT EXISTS (SELECT 1 FROM deliveries WHERE state = 'leased' AND (owner <> ALL(%s) OR leased_until < %s)) "
    "OR EXISTS (SELECT 1 FROM channels WHERE owner <> ALL(%s)) "
    "OR EXISTS (SELECT 1 FROM deliveries WHERE state = 'due' AND home IS NOT NULL AND home <> ALL(%s)) "
    "OR EXISTS (SELECT 1 FROM deliveries d WHERE d.state = 'due' AND NOT EXISTS (SELECT 1 FROM channels c "
    "WHERE c.name = d.channel AND c.owner = ANY(%s)))"
)
COUNT = (
    "INSERT INTO outbox_counts (name, part, count) VALUES (%s, pg_backend_pid() %% 32, %s) "
    "ON CONFLICT (name, part) DO UPDATE SET count = outbox_counts.count + excluded.count"
)
"""In parts: one row for all workers would make them wait for each other."""

# A server

LOCK_REQUEST = "SELECT pg_advisory_xact_lock(1414680405, hashtext(%s))"
"""A request that is not there yet has no row that could be locked."""
PUT_REQUEST = "INSERT INTO requests ({columns}) VALUES ({marks}) ON CONFLICT (owner, key) DO UPDATE SET {sets}"

# Sessions

LOCK_SESSION = "SELECT 1 FROM sessions WHERE id = %s FOR NO KEY UPDATE"
LOCK_WORK = "SELECT 1 FROM session_work WHERE id = %s FOR NO KEY UPDATE"
LOCK_ASK = "SELECT 1 FROM asks WHERE id = %s FOR NO KEY UPDATE"
LOCK_KILL = "SELECT 1 FROM kills WHERE id = %s FOR NO KEY UPDATE"
ADD_AUDIT = (
    "INSERT INTO audit (seq, at, session, agent, kind, data, key, digest, mac) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (seq) DO NOTHING"
)
PUT_MEMBER = "INSERT INTO members ({columns}) VALUES ({marks}) ON CONFLICT (session, agent) DO UPDATE SET {sets}"
PUT_FILE = "INSERT INTO workspace ({columns}) VALUES ({marks}) ON CONFLICT (session, path) DO UPDATE SET {sets}"
PUT_ASK = "INSERT INTO asks ({columns}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {sets}"
USE_TOKEN = (
    "UPDATE members SET tokens = least(%(most)s::float8, coalesce(tokens, %(most)s::float8) "
    "+ greatest(0.0, %(now)s::float8 - tokens_at) * %(rate)s::float8) - 1.0, tokens_at = %(now)s "
    "WHERE session = %(session)s AND agent = %(agent)s AND state = 'present' AND ring = %(ring)s AND elevated IS NULL "
    "AND least(%(most)s::float8, coalesce(tokens, %(most)s::float8) + greatest(0.0, %(now)s::float8 - tokens_at) "
    "* %(rate)s::float8) >= 1.0 "
    "AND EXISTS (SELECT 1 FROM sessions WHERE id = %(session)s AND state = 'active' AND ends_at > %(now)s)"
)
SESSIONS = "SELECT {columns} FROM sessions WHERE {where} ORDER BY created_at DESC, id DESC LIMIT %s"


ORDINARY = frozenset(
    {ADD_RUN, RUN_BEGUN, SET_RUN_STATE, FINISH_RUN, LOCK_RUN, APPEND_SHOWN, APPEND_HIDDEN, SETTLE_STEP}
    | {BEGIN_HELD_STEP, SETTLE_AND_BEGIN, SEND_SIGNAL, TAKE_SIGNAL, APPEND_EVENT, LOCK_STREAM}
    | {ENROLL, BEAT, CLAIM, RENEW, HOLDER_OF, HOLD, HOLD_RUN, RELEASE_LEASE, NOTIFY, ADD_WRITER}
)
"""What nearly all transactions consist of. Each is prepared once per connection and sent without a cursor: the type of
each value can be told by its place, and what they answer is texts and numbers."""


def upsert(statement: str, columns: tuple[str, ...]) -> str:
    """A statement that writes a whole row, whether there is one or not."""
    return statement.format(
        columns=", ".join(columns),
        marks=", ".join(["%s"] * len(columns)),
        sets=", ".join(f"{name} = excluded.{name}" for name in columns),
    )
