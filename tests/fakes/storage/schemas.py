"""The schema of a database as text, and the migrations of this version without the script of their schema."""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from gatewayd.storage.engine.migrate import HISTORY
from tests.fakes.storage.postgres import Postgres

MIGRATIONS: Final = Path(__file__).parents[3] / "gatewayd" / "storage" / "migrations"
PACKAGE: Final = "stepwise_migrations"

# What pg_dump writes beside the statements of the schema.
NO_STATEMENT: Final = re.compile(
    r"--|SET |SELECT pg_catalog\.(set_config|setval\(.*, 1, false\);)|\\|(CREATE|COMMENT ON) SCHEMA |$"
)


@contextmanager
def copy_migrations(folder: Path) -> Iterator[str]:
    """Copy the migrations alone into a folder, and return the name of their package until the end."""
    shutil.copytree(MIGRATIONS, folder / PACKAGE, ignore=shutil.ignore_patterns("*.sql", "__pycache__"))
    sys.path.insert(0, str(folder))
    try:
        yield PACKAGE
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
            del sys.modules[name]


def sqlite_script(path: Path) -> str:
    """Return the statements that make the schema of a file without rows, but for the table of the history."""
    with closing(sqlite3.connect(path)) as connection:
        shadows = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}
        order = "CASE type WHEN 'table' THEN 0 ELSE 1 END, rowid"
        rows = connection.execute(
            f"SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY {order}"
        ).fetchall()
        left_out = {HISTORY, *shadows}
        statements = [sql for name, sql in rows if name not in left_out and not name.startswith("sqlite_")]
        for name in [name for name, sql in rows if sql.startswith("CREATE TABLE") and name not in left_out]:
            if not name.startswith("sqlite_") and connection.execute(f'SELECT 1 FROM "{name}"').fetchone():
                raise ValueError(f"the migrations put rows into {name}, which the script would not")
    return "".join(f"{statement};\n" for statement in statements)


def postgres_script(server: Postgres, url: str, schema: str = "public") -> str:
    """Return the statements that make a schema and its rows, without its name, but for the history."""
    dump = subprocess.run(
        [
            *(server.programs / "pg_dump", "--no-owner", "--no-privileges", "--inserts"),
            *(f"--exclude-table={HISTORY}*", f"--schema={schema}", url),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in dump.stdout.splitlines() if not NO_STATEMENT.match(line)]
    return re.sub(rf"\b{schema}\.", "", "".join(f"{line}\n" for line in lines))
