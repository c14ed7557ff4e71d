"""gatewayctl import."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.commands.upkeep import imports
from tests.fakes.daemons.control_socket import Ctl

REPORT: dict[str, Any] = {
    "source": "/srv/webui.db",
    "dry_run": False,
    "has_changed": True,
    "kinds": [
        {"kind": "user", "found": 3, "imported": 2, "present": 0, "left_out": 1},
        {"kind": "key", "found": 0, "imported": 0, "present": 0, "left_out": 0},
    ],
    "left_out": [
        {"kind": "user", "id": "u-1", "name": "Ann@example.org", "reason": "the user u-0 has it", "count": 1},
        {"kind": "prompt", "id": "", "name": "", "reason": "the gateway has no prompts", "count": 7},
    ],
    "changed": [{"kind": "chat", "id": "c-1", "name": "T\u001b[31m", "reason": "its folder is not here"}],
}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []

    def run(verb: str, tell: Any, config: Path | None, **values: Any) -> Any:
        asked.append((verb, config, values))
        return {
            **REPORT,
            "dry_run": values["dry_run"],
            "has_changed": not values["dry_run"] and len(asked) == 1,
        }

    monkeypatch.setattr(imports, "run_order", run)
    return asked


async def test_people_read_numbers_and_reasons(ctl: Ctl, orders: list[Any]) -> None:
    done = await ctl("import", "open-webui", "--database", "webui.db", "--uploads", "up")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines == [
        "KIND FOUND IMPORTED HERE LEFT OUT",
        "user 3 2 0 1",
        "",
        "Left out:",
        "user u-1 (Ann@example.org): the user u-0 has it",
        "7 prompt: the gateway has no prompts",
        "",
        "Changed:",
        "chat c-1 (T\\x1b[31m): its folder is not here",
    ]
    assert "Start the daemon" in done.err
    [(verb, _, values)] = orders
    assert verb == "import.open-webui"
    here = Path.cwd()
    assert values == {"database": str(here / "webui.db"), "uploads": str(here / "up"), "dry_run": False}
    again = await ctl("import", "open-webui", "--database", "webui.db")
    assert "Nothing was imported" in again.err
    assert orders[1][2]["uploads"] is None


async def test_programs_read_the_report(ctl: Ctl, orders: list[Any], tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://u:p@h/d\n")
    arguments = ("import", "open-webui", "--database", f"@{secret}")
    shown = json.loads((await ctl(*arguments, "-o", "json")).out)
    assert [each["kind"] for each in shown["kinds"]] == ["user", "key"]
    assert orders[0][2]["database"] == "postgresql://u:p@h/d"
    assert (await ctl(*arguments, "-o", "name")).out == "unchanged\n"
    dry = await ctl(*arguments, "--dry-run")
    assert "Dry run: nothing was imported." in dry.err
    assert (await ctl("import", "open-webui")).code == 2
