"""The change log of the cluster profile, on PostgreSQL: what other nodes must forget, as commits order it.

Triggers note what a transaction changes in `cluster_pending`. A deferred trigger logs it at the commit: it
raises the version, whose row it locks until the transaction is over, and notifies the nodes. So the versions
have the order of the commits, and no transaction waits for another one that is not committing.
"""

from typing import Any, Final, NamedTuple

from tortoise import migrations
from tortoise.migrations import operations as ops

MAX_SUBJECTS: Final = 100
"""Subjects of a kind that one transaction logs; more are one row without a subject."""


class WatchedTable(NamedTuple):
    """A table whose rows nodes remember: the kind of its changes, and the columns that name the subject.

    `columns` are those whose update is a change; () watches no update. `events` are further ones.
    """

    table: str
    kind: str
    subject: tuple[str, ...]
    columns: tuple[str, ...] = ()
    events: tuple[str, ...] = ("INSERT", "DELETE")


USER_COLUMNS: Final = (
    *("email", "username", "name", "role", "active", "profile_image_url", "token_version", "profile"),
    *("settings", "info", "oauth", "scim", "user_name", "display_name", "formatted_name", "given_name"),
    *("family_name", "emails", "roles"),
)
PLUGIN_COLUMNS: Final = (
    *("family", "id", "kind", "user_id", "name", "content", "description", "manifest", "meta", "specs"),
    *("valves", "is_active", "is_global", "origin", "path", "missing"),
)
LIMIT_COLUMNS: Final = (
    *("subject", "subject_id", "subject_name", "model", "requests_per_minute", "tokens_per_minute"),
    *("parallel", "budgets", "warn_percent"),
)
SERVER_COLUMNS: Final = (
    *("id", "name", "url", "type", "description", "path", "key", "headers", "spec", "functions", "timeout"),
    "is_active",
)
GRANT_COLUMNS: Final = ("resource_type", "resource_id", "principal_type", "principal_id", "permission")
MODEL_COLUMNS: Final = ("id", "user_id", "name", "base_model_id", "params", "meta", "is_active")

WATCHED: Final = (
    WatchedTable("users", "user", ("id",), USER_COLUMNS, ()),
    WatchedTable("users", "user_removed", ("id",), (), ("DELETE",)),
    WatchedTable("api_keys", "key", ("user_id",), ("user_id", "digest", "expires_at"), ("DELETE",)),
    WatchedTable("revoked_tokens", "session", ("user_id", "jti"), (), ("INSERT",)),
    WatchedTable("groups", "group", ("id",), ("permissions",), ("DELETE",)),
    WatchedTable("group_members", "member", ("user_id",), ("group_id", "user_id")),
    WatchedTable("stored_values", "setting", ("name",), ("name", "value")),
    WatchedTable("models", "model", ("id",), MODEL_COLUMNS),
    WatchedTable("access_grants", "grant", ("resource_type", "resource_id"), GRANT_COLUMNS),
    WatchedTable("plugins", "plugin", ("family", "id"), PLUGIN_COLUMNS),
    WatchedTable("tool_servers", "tool_server", ("id",), SERVER_COLUMNS),
    WatchedTable("limits", "limit", ("id",), LIMIT_COLUMNS),
)

# A deactivation, and the end of all sessions of an account.
USER_OUT: Final = (
    "OLD.active AND OLD.role <> 'pending' AND NOT (NEW.active AND NEW.role <> 'pending')",
    "OLD.token_version <> NEW.token_version",
)

MAKE: Final = (
    "CREATE TABLE cluster_version (id INT PRIMARY KEY CHECK (id = 1), v BIGINT NOT NULL)",
    "INSERT INTO cluster_version (id, v) VALUES (1, 0)",
    "CREATE TABLE cluster_changes (version BIGINT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL,"
    " at TIMESTAMPTZ NOT NULL)",
    # Rows of a transaction that has not ended: nobody else sees one, and none outlives its transaction.
    "CREATE UNLOGGED TABLE cluster_pending (transaction XID8 NOT NULL, kind TEXT NOT NULL,"
    " subject TEXT NOT NULL, PRIMARY KEY (transaction, kind, subject))",
    """
CREATE FUNCTION cluster_note_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    former text;
    present text;
BEGIN
    EXECUTE format('SELECT %s, %s',
        (SELECT string_agg(format('$1.%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)),
        (SELECT string_agg(format('$2.%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)))
        INTO former, present USING OLD, NEW;
    INSERT INTO cluster_pending (transaction, kind, subject)
        SELECT pg_current_xact_id(), TG_ARGV[0], subject FROM unnest(ARRAY[former, present]) AS noted(subject)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    f"""
CREATE FUNCTION cluster_note_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'WITH subjects AS (SELECT DISTINCT %s AS subject FROM changed)'
        ' INSERT INTO cluster_pending (transaction, kind, subject)'
        ' SELECT DISTINCT pg_current_xact_id(), $1,'
        ' CASE WHEN (SELECT count(*) FROM subjects) > {MAX_SUBJECTS} THEN '''' ELSE subject END FROM subjects'
        ' ON CONFLICT DO NOTHING',
        (SELECT string_agg(format('%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)))
        USING TG_ARGV[0];
    RETURN NULL;
END $$
""",  # noqa: S608 - a constant
    """
CREATE FUNCTION cluster_note_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cluster_pending (transaction, kind, subject) VALUES (pg_current_xact_id(), TG_ARGV[0], '')
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    f"""
CREATE FUNCTION cluster_log() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kinds text[];
    subjects text[];
    last bigint;
BEGIN
    -- The first row of a transaction logs all of them.
    IF NOT EXISTS (SELECT 1 FROM cluster_pending
        WHERE transaction = NEW.transaction AND kind = NEW.kind AND subject = NEW.subject) THEN
        RETURN NULL;
    END IF;
    WITH noted AS (
        DELETE FROM cluster_pending WHERE transaction = NEW.transaction RETURNING kind, subject
    ), folded AS (
        SELECT kind FROM noted GROUP BY kind HAVING count(*) > {MAX_SUBJECTS} OR bool_or(subject = '')
    ), logged AS (
        SELECT kind, '' AS subject FROM folded
        UNION ALL SELECT kind, subject FROM noted WHERE kind NOT IN (SELECT kind FROM folded)
    )
    SELECT array_agg(kind ORDER BY kind, subject), array_agg(subject ORDER BY kind, subject)
        INTO kinds, subjects FROM logged;
    UPDATE cluster_version SET v = v + cardinality(kinds) WHERE id = 1 RETURNING v INTO STRICT last;
    INSERT INTO cluster_changes (version, kind, subject, at)
        SELECT last - cardinality(kinds) + n, kind, subject, clock_timestamp()
        FROM unnest(kinds, subjects) WITH ORDINALITY AS logged(kind, subject, n);
    PERFORM pg_notify('gatewayd_changes', last::text);
    RETURN NULL;
END $$
""",  # noqa: S608 - a constant
    "CREATE CONSTRAINT TRIGGER cluster_logged AFTER INSERT ON cluster_pending"
    " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cluster_log()",
)


def trigger_statements(watched: WatchedTable) -> list[str]:
    """Return the statements that make the triggers of a table."""
    arguments = ", ".join(f"'{each}'" for each in (watched.kind, *watched.subject))
    name = f"cluster_{watched.kind}"
    statements = []
    for event in watched.events:
        rows = "NEW" if event == "INSERT" else "OLD"
        statements.append(
            f"CREATE TRIGGER {name}_{event.lower()} AFTER {event} ON {watched.table}"
            f" REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT"
            f" EXECUTE FUNCTION cluster_note_rows({arguments})"
        )
    if watched.columns:
        statements.append(
            f"CREATE TRIGGER {name}_update AFTER UPDATE OF {', '.join(watched.columns)} ON {watched.table}"
            " FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)"
            f" EXECUTE FUNCTION cluster_note_row({arguments})"
        )
    statements.append(
        f"CREATE TRIGGER {name}_truncate AFTER TRUNCATE ON {watched.table} FOR EACH STATEMENT"
        f" EXECUTE FUNCTION cluster_note_all('{watched.kind}')"
    )
    return statements


def user_statements() -> list[str]:
    """Return the statements that make the triggers of accounts that lose their access or their sessions."""
    return [
        f"CREATE TRIGGER cluster_{kind} AFTER UPDATE OF active, role, token_version ON users"
        f" FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION cluster_note_row('{kind}', 'id')"
        for kind, condition in zip(("user_out", "user_signed_out"), USER_OUT, strict=True)
    ]


async def make_log(_: Any, editor: Any) -> None:
    """Make the log and its triggers on PostgreSQL; a SQLite file has one process."""
    client = editor.client
    if client.capabilities.dialect != "postgres":
        return
    made = (statement for watched in WATCHED for statement in trigger_statements(watched))
    for statement in (*MAKE, *made, *user_statements()):
        await client.execute_query(statement)


class Migration(migrations.Migration):
    """Make the change log of the cluster profile."""

    dependencies = [("gatewayd", "0020_usage")]

    operations = [ops.RunPython(make_log)]
