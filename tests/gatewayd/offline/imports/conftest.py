"""A gateway of its own for each test, and what an import of a database of Open WebUI into it reports."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gatewayd.offline.orders import IMPORT, ORDERS, OfflineOrder
from gatewayd.offline.place import OfflineGateway, read_gateway
from gatewayd.storage.engine.database import Database
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.open_webui import NEW, Rows, make_file, make_uploads


@dataclass
class Importing:
    """A gateway with a database of its own, into which databases of Open WebUI are imported."""

    folder: Path
    environ: dict[str, str]
    uploads: Path | None
    progress: list[str] = field(default_factory=list)

    @property
    def gateway(self) -> OfflineGateway:
        """The gateway, as the order finds it."""
        return read_gateway(None, None, self.environ)

    def rows(self, rows: Rows, schema: str = NEW, *, dry_run: bool = False) -> dict[str, Any]:
        """Import rows and return the report."""
        path = self.folder / "webui" / "webui.db"
        for each in path.parent.glob("webui.db*"):
            each.unlink()
        return self.database(str(make_file(path, rows, schema)), dry_run=dry_run)

    def database(self, address: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Import a database and return the report."""
        order = OfflineOrder(verb=IMPORT, database=address, uploads=self.uploads, dry_run=dry_run)
        with order.opened(self.gateway.place) as given:
            report = ORDERS[IMPORT](self.gateway, order, given, self.progress.append)
        assert isinstance(report, dict)
        return report

    def open(self) -> Any:
        """Open the database of the gateway, for its stores."""
        return Database.open(self.gateway.place.location)


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    state = tmp_path / "state"
    state.mkdir()
    return into(tmp_path, {"DATA_DIR": str(state), "DATABASE_URL": f"sqlite:///{migrated_copy(state)}"})


def into(folder: Path, environ: dict[str, str]) -> Importing:
    """Return a gateway with these settings, and the uploads of the household."""
    return Importing(folder, environ, make_uploads(folder / "uploads"))


def numbers(report: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return how many records of each kind were imported, were here, and were left out."""
    return {
        each["kind"]: (each["imported"], each["present"], each["left_out"])
        for each in report["kinds"]
        if each["found"]
    }


def reasons(report: dict[str, Any], kind: str, where: str = "left_out") -> dict[str, str]:
    """Return the reasons of one kind by id."""
    return {each["id"]: each["reason"] for each in report[where] if each["kind"] == kind}


Run = Callable[[Rows], dict[str, Any]]
