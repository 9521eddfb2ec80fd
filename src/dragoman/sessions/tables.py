"""The tables, step by step as they came to be.

A step that has been released is never changed: what else is needed is a new step. `{bytes}` is the type for bytes, the
one word in which the two databases differ.
"""

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "0001-turns",
        (
            """CREATE TABLE conversations (
                owner TEXT NOT NULL, id TEXT NOT NULL, dialect TEXT NOT NULL, head TEXT NOT NULL,
                revision BIGINT NOT NULL, metadata {bytes} NOT NULL, created BIGINT NOT NULL,
                PRIMARY KEY (owner, id))""",
            """CREATE TABLE turns (
                key TEXT PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL,
                conversation TEXT NOT NULL, dialect TEXT NOT NULL, model TEXT NOT NULL, settings TEXT NOT NULL,
                calls {bytes} NOT NULL, digest TEXT NOT NULL, attempt TEXT NOT NULL, reply {bytes} NOT NULL,
                status TEXT NOT NULL, created BIGINT NOT NULL, delivered BIGINT NOT NULL,
                alive BIGINT NOT NULL)""",
            "CREATE INDEX turns_by_id ON turns (owner, id)",
            "CREATE INDEX turns_by_parent ON turns (parent, digest)",
            "CREATE INDEX turns_by_age ON turns (created)",
            """CREATE TABLE items (
                turn TEXT NOT NULL, place BIGINT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL,
                said BIGINT NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (turn, place))""",
            "CREATE INDEX items_by_id ON items (owner, id)",
            "CREATE INDEX turns_by_settings ON turns (settings)",
            "CREATE INDEX conversations_by_head ON conversations (head)",
            "CREATE TABLE settings (hash TEXT PRIMARY KEY, body {bytes} NOT NULL, used BIGINT NOT NULL)",
        ),
    ),
    (
        "0002-signatures",
        (
            """CREATE TABLE signatures (
                owner TEXT NOT NULL, call TEXT NOT NULL, digest TEXT NOT NULL, issuer TEXT NOT NULL,
                value TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (owner, call, digest))""",
            "CREATE INDEX signatures_by_age ON signatures (created)",
        ),
    ),
    (
        "0003-asides",
        (
            """CREATE TABLE asides (
                owner TEXT NOT NULL, call TEXT NOT NULL, body {bytes} NOT NULL, created BIGINT NOT NULL,
                PRIMARY KEY (owner, call))""",
            "CREATE INDEX asides_by_age ON asides (created)",
        ),
    ),
    (
        "0004-runs",
        (
            """CREATE TABLE runs (
                owner TEXT NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
                summary {bytes} NOT NULL, created BIGINT NOT NULL, alive BIGINT NOT NULL, PRIMARY KEY (owner, id))""",
            "CREATE INDEX runs_by_age ON runs (created)",
            """CREATE TABLE run_entries (
                owner TEXT NOT NULL, run TEXT NOT NULL, place BIGINT NOT NULL, body {bytes} NOT NULL,
                PRIMARY KEY (owner, run, place))""",
        ),
    ),
    (
        "0005-messages-and-claims",
        (
            """CREATE TABLE run_messages (
                owner TEXT NOT NULL, run TEXT NOT NULL, topic TEXT NOT NULL, body {bytes} NOT NULL,
                created BIGINT NOT NULL, PRIMARY KEY (owner, run, topic))""",
            """CREATE TABLE claims (
                owner TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, alive BIGINT NOT NULL,
                PRIMARY KEY (owner, name))""",
        ),
    ),
)

MIGRATIONS = "CREATE TABLE IF NOT EXISTS dragoman_steps (name TEXT PRIMARY KEY)"
