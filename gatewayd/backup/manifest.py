"""What a backup says about itself: the first member of its archive."""

import builtins
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.transfer.row_sums import TableSum

FORMAT: Final = 1
MANIFEST_BYTES: Final = 1 << 18
"""Room for the manifest at the begin of an archive; blanks fill it up."""

MAX_NOTES: Final = 100
"""Number of things that were left out, or are missing, of which a manifest has the names."""

TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"
_MORE: Final = re.compile(r"and (\d{1,9}) more")


def _time(text: str) -> str:
    datetime.strptime(text, TIME_FORMAT)  # noqa: DTZ007 - it is only checked
    return text


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class TableEntry(BaseModel):
    """One table: the number of its rows, and the sum of them (`storage.transfer.row_sums`)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    rows: Count
    sum: Digest


class BackupManifest(BaseModel):
    """The manifest. `created_at` is RFC 3339 in UTC; `bytes` is the size of all members that follow.

    `checksums` is the SHA-256 of the last member, which has that of every other one. `left_out` and `missing`
    have at most MAX_NOTES names, and then how many more there are.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: Annotated[int, Field(ge=1)]
    version: str
    created_at: Annotated[str, AfterValidator(_time)]
    engine: str
    migrations: tuple[str, ...]
    tables: Mapping[str, TableEntry]
    files: Count
    bytes: Count
    checksums: Digest
    has_secrets: bool
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows of all tables."""
        return sum(table.rows for table in self.tables.values())

    def sums(self) -> Mapping[str, TableSum]:
        """Return the sums of the tables."""
        return {name: TableSum(table.rows, table.sum) for name, table in self.tables.items()}

    def is_missing_known(self, file_ids: Collection[str]) -> bool:
        """Return whether files that are missing were so when the backup was made, as far as it has names."""
        more = _MORE.fullmatch(self.missing[-1]) if len(self.missing) > MAX_NOTES else None
        unnamed = len(set(file_ids) - set(self.missing))
        return unnamed <= (int(more[1]) if more else 0)

    def encode(self) -> "builtins.bytes":
        """Return the member, MANIFEST_BYTES long."""
        data = self.model_dump_json(indent=1).encode()
        if len(data) > MANIFEST_BYTES:
            raise GatewayError(ErrorKind.INTERNAL, "cannot write the backup: its manifest is too long")
        return data.ljust(MANIFEST_BYTES)


def decode_manifest(data: bytes, where: str) -> BackupManifest:
    """Return the manifest in a member; invalid_request for anything else, or one of a later format."""
    if not data.strip():
        raise _refused(where, "it was not completed")
    try:
        found = BackupManifest.model_validate_json(data)
    except ValidationError as error:
        raise _refused(where, "its manifest is damaged") from error
    if found.format > FORMAT:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot read the backup {where}: version {found.version[:40]} made it; install that version",
            code="backup_newer",
        )
    return found


def entries(sums: Mapping[str, TableSum]) -> Mapping[str, TableEntry]:
    """Return the sums of tables as entries."""
    return {name: TableEntry(rows=each.rows, sum=each.digest) for name, each in sums.items()}


def noted(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = len(names) - MAX_NOTES
    return tuple(names[:MAX_NOTES]) + ((f"and {more} more",) if more > 0 else ())


def _refused(where: str, reason: str) -> GatewayError:
    return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot read the backup {where}: {reason}")
