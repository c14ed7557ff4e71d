"""Results of work on the state without the daemon, for output; no messages of the control protocol."""

from pydantic import Field

from gatewayctl.wire.base import Reply


class Backup(Reply):
    """A backup. With a `problem` it is not complete, or damaged, and the facts of its manifest are empty.

    `size` is in bytes, `left_out` has files that it could not take, `missing` files that were not there.
    """

    name: str
    path: str
    size: int
    made_at: str
    problem: str = ""
    version: str = ""
    engine: str = ""
    schema_version: str = Field("", alias="schema")
    tables: int = 0
    rows: int = 0
    files: int = 0
    has_secrets: bool = False
    left_out: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)


class PrunedBackup(Reply):
    """A backup that was `kept` or `removed`; with `dry_run` nothing was removed."""

    name: str
    made_at: str
    outcome: str
    dry_run: bool = False


class RestoredBackup(Reply):
    """A backup that was restored.

    `pending` are the migrations that its database lacks, `former` is the directory of the state from before,
    `beside` that of settings, plugins and credentials, `secrets` the names of restored secrets.
    """

    name: str
    version: str
    made_at: str
    rows: int
    files: int
    pending: list[str] = Field(default_factory=list)
    former: str | None = None
    beside: str
    secrets: list[str] = Field(default_factory=list)


class RotatedSecret(Reply):
    """A signing secret that was replaced: sessions of the former one end at `until`; `former` are kept."""

    until: str
    former: int


class SchemaCopy(Reply):
    """A copy of the database from before the migration `before`; `size` is in bytes."""

    before: str
    path: str
    size: int
    made_at: str


class SchemaState(Reply):
    """The schema of the database; `problem` is empty if this version can use it."""

    database: str
    applied: list[str]
    pending: list[str]
    problem: str = ""
    copies: list[SchemaCopy] = Field(default_factory=list)


class PlannedMigration(Reply):
    """A migration that is pending, or was made, with the statements of its plan."""

    migration: str
    sql: list[str] = Field(default_factory=list)


class ImportedKind(Reply):
    """Numbers of records of one kind: `present` ones were here already and are unchanged."""

    kind: str
    found: int
    imported: int
    present: int
    left_out: int


class ImportRemark(Reply):
    """A record that was left out or changed, with the reason; `count` such records have no `id`."""

    kind: str
    id: str
    name: str
    reason: str
    count: int = 1


class ImportReport(Reply):
    """An import; with `dry_run` nothing was stored, and the numbers are those of a real one."""

    source: str
    dry_run: bool = False
    has_changed: bool
    kinds: list[ImportedKind]
    left_out: list[ImportRemark]
    changed: list[ImportRemark]


class CopiedTable(Reply):
    """A table that was copied: its rows, and the sum of them, which both databases have."""

    table: str
    rows: int
    sum: str
