"""Tables without a place here are counted, and a database of another program is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.offline.imports.leftovers import LEFT_OUT
from tests.fakes.storage.open_webui import household, make_file
from tests.gatewayd.offline.imports.conftest import Importing


def test_rows_of_other_tables_are_counted(importing: Importing, tmp_path: Path) -> None:
    path = make_file(tmp_path / "x.db", household())
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in LEFT_OUT:
            connection.execute(f'CREATE TABLE IF NOT EXISTS "{table}" (id TEXT)')
            if table != "prompt":
                connection.execute(f'INSERT INTO "{table}" VALUES (1), (2)')
    report = importing.database(str(path))
    counted = {each["kind"]: each["count"] for each in report["left_out"] if each["kind"] != "setting"}
    assert counted == {table.replace("_", " "): 1 if table == "prompt" else 2 for table in LEFT_OUT}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ('DROP TABLE "auth"', "it has no table auth"),
        ('ALTER TABLE "user" DROP COLUMN role', "it has no column role in user"),
    ],
)
def test_another_database_is_refused(
    importing: Importing, tmp_path: Path, statement: str, reason: str
) -> None:
    path = make_file(tmp_path / "x.db", {})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    with pytest.raises(GatewayError, match=reason) as caught:
        importing.database(str(path))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "database")
