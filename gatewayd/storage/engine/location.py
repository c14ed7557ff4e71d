"""Location of the database: parses an address and builds the engine's configuration."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote

from gatewayd import extras
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra
from gatewayd.urls import split_url

APP: Final = "gatewayd"
MIGRATIONS: Final = "gatewayd.storage.migrations"
TABLES: Final = (
    "gatewayd.storage.tables.accounts",
    "gatewayd.storage.tables.documents",
    "gatewayd.storage.tables.chats",
    "gatewayd.storage.tables.plugins",
    "gatewayd.storage.tables.responses",
    "gatewayd.storage.tables.streams",
    "gatewayd.storage.tables.batches",
    "gatewayd.storage.tables.limits",
    "gatewayd.storage.tables.audit",
    "gatewayd.storage.tables.usage",
    "gatewayd.storage.tables.nodes",
)
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "afs", "lustre", "beegfs", "ncpfs"}
)

SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

NODE_IDLE_MILLISECONDS: Final = 10_000
"""Time limit of the server for idle transactions of a node: a paused node must not hold up the others."""

# Time limits of the server in milliseconds; a migration lifts the first two.
SESSION_TIMEOUTS: Final = {
    "lock_timeout": "5000",
    "statement_timeout": "8000",
    "idle_in_transaction_session_timeout": "60000",
}


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """A SQLite file (`path`) or a PostgreSQL server (`path` is None)."""

    path: Path | None
    engine: str
    credentials: dict[str, Any]

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a SQLite file."""
        return self.path is not None

    @property
    def connection(self) -> str:
        """Name of the connection: tortoise caches statements by name, and the engines need different ones."""
        return "sqlite" if self.is_sqlite else "postgresql"

    @property
    def address(self) -> str:
        """Address of the database, without user name and password."""
        if self.path is not None:
            return str(self.path)
        host = str(self.credentials["host"])
        bracketed = f"[{host}]" if ":" in host else host
        return f"{bracketed}:{self.credentials['port']}/{self.credentials['database']}"

    @property
    def server(self) -> str | None:
        """The address of the server, None for a file."""
        return None if self.is_sqlite else self.address

    def config(self) -> dict[str, Any]:
        """Return the configuration for tortoise."""
        return {
            "connections": {self.connection: {"engine": self.engine, "credentials": self.credentials}},
            "apps": {
                APP: {
                    "models": list(TABLES),
                    "default_connection": self.connection,
                    "migrations": MIGRATIONS,
                }
            },
        }


def parse(url: str, pool_size: int = 10) -> DatabaseLocation:
    """Return the location of an address.

    Accepts `sqlite:///relative`, `sqlite:////absolute`,
    `postgresql://user:password@host:port/name?sslmode=require` (also `?host=/directory` of a unix socket).
    Raises not_configured for anything else; its message contains no password.
    """
    try:
        parts = split_url(url)
        port = parts.port
    except ValueError as error:
        raise _refusal("it is no valid URL, or its port is no number") from error
    if parts.scheme == "sqlite":
        return _sqlite(parts)
    if parts.scheme in {"postgresql", "postgres"}:
        return _postgres(parts, port, pool_size)
    raise _refusal(f"expected sqlite:/// or postgresql://, not {parts.scheme or '(no scheme)'}")


def location_of_node(location: DatabaseLocation, node_id: str) -> DatabaseLocation:
    """Return the location for a node: its connections have its id, and its idle transactions end soon."""
    limits = {
        **location.credentials["server_settings"],
        "idle_in_transaction_session_timeout": str(NODE_IDLE_MILLISECONDS),
    }
    credentials = {**location.credentials, "server_settings": limits, "label": node_id}
    return replace(location, credentials=credentials)


def sqlite(path: Path) -> DatabaseLocation:
    """Return the location of a SQLite file, with settings that make each commit durable."""
    credentials = {
        "file_path": str(path),
        "busy_timeout": 5000,
        "journal_mode": "WAL",
        "synchronous": "FULL",
        "foreign_keys": "ON",
        "journal_size_limit": 16 * 1024 * 1024,
    }
    return DatabaseLocation(path, "gatewayd.storage.engine.sqlite", credentials)


def refuse_network_file_system(path: Path, mounts: str) -> None:
    """Raise not_configured for a file on a network file system, where SQLite's locks are unreliable.

    `mounts` is the text of /proc/self/mounts.
    """
    folder = path.resolve().parent
    best, kind = "", ""
    for line in mounts.splitlines():
        words = line.split()
        if len(words) < 3:
            continue
        point, file_system = words[1:3]
        point = point.replace("\\040", " ")
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, file_system
    if kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse."):
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot keep a SQLite database on the {kind} file system at {best}: "
            "use a local disk, or PostgreSQL",
            param="database_url",
        )


def _sqlite(parts: SplitResult) -> DatabaseLocation:
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc:
        raise _refusal("a file is named after sqlite:/// (relative) or sqlite://// (absolute)")
    if path in {"", ":memory:"} or path.endswith("/"):
        raise _refusal("expected the path of a file: a database in memory is lost at the end of the process")
    if parts.query:
        raise _refusal(f"a file has no options, not {_names(parse_qsl(parts.query))}")
    return sqlite(Path(path))


def _postgres(parts: SplitResult, port: int | None, pool_size: int) -> DatabaseLocation:
    if not extras.is_installed(PackageExtra.POSTGRES):
        raise _refusal(extras.install_hint(PackageExtra.POSTGRES))
    options = dict(parse_qsl(parts.query))
    credentials: dict[str, Any] = {
        "host": options.pop("host", None) or parts.hostname or "localhost",
        "port": _port(options.pop("port", "")) or port or 5432,
        "user": unquote(parts.username or "") or options.pop("user", None) or "postgres",
        "password": unquote(parts.password or "") or None,
        "database": unquote(parts.path.removeprefix("/")) or "gatewayd",
        "minsize": 1,
        # One extra connection only holds the claim on the database.
        "maxsize": pool_size + 1,
        "timeout": 5,
        "server_settings": dict(SESSION_TIMEOUTS),
    }
    mode = options.pop("sslmode", None)
    if mode is not None:
        if mode not in SSL_MODES:
            raise _refusal(f"expected an sslmode of {', '.join(SSL_MODES)}, not {mode}")
        credentials["ssl"] = mode
    if options:
        raise _refusal(f"expected the options host, port, user or sslmode, not {_names(options.items())}")
    return DatabaseLocation(None, "gatewayd.storage.engine.postgres", credentials)


def _port(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise _refusal("its port is no number from 1 to 65535")
    return int(text)


def _names(options: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted({name for name, _ in options}))


def _refusal(reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED, f"cannot use the address of the database: {reason}", param="database_url"
    )
