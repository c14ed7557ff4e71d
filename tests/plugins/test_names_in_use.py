"""The names that published plugins use are offered, or refused for a reason."""

import asyncio
import importlib
import inspect
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from gatewayd.plugins.open_webui.finder import InstalledModules, install
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.daemons.plugin_site import CORPUS
from tests.fakes.plugins.host import make_host
from tests.scan_plugin_names import OFFERED, REFUSED, main, names_of, read_decisions, scan, undecided

DECISIONS: Final = read_decisions()
MISSING: Final = object()


@pytest.fixture
async def installed(tmp_path: Path) -> AsyncIterator[InstalledModules]:
    names = install(make_host(tmp_path), asyncio.get_running_loop())
    yield names
    names.close()


def found(installed: InstalledModules, name: str) -> Any:
    """Return what a name stands for, MISSING when the gateway has nothing of it."""
    parts = name.split(".")
    value: Any = installed.app
    rest = parts[1:]
    if parts[0] != "app":
        value, rest = importlib.import_module(parts[0]), parts[1:]
        while rest and (module := imported(".".join(parts[: len(parts) - len(rest) + 1]))) is not None:
            value, rest = module, rest[1:]
    for part in rest:
        value = getattr(value, part, MISSING)
        if value is MISSING:
            break
    return value


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def is_refused(value: Any) -> bool:
    """Tell whether a name is not there, or says when it is called that it is not provided."""
    if value is MISSING:
        return True
    try:
        result = value()
        if inspect.isawaitable(result):
            asyncio.run(awaited(result))
    except NotProvidedError:
        return True
    return False


async def awaited(value: Any) -> Any:
    return await value


def failing(installed: InstalledModules, word: str) -> list[str]:
    chosen = [one.name for one in DECISIONS if one.word == word]
    if word == OFFERED:
        return [name for name in chosen if found(installed, name) is MISSING]
    return [name for name in chosen if not is_refused(found(installed, name))]


@pytest.mark.parametrize("word", [OFFERED, REFUSED])
async def test_what_is_decided_is_so(installed: InstalledModules, word: str) -> None:
    # In a thread, as plugins run: some names ask the gateway.
    assert await asyncio.to_thread(failing, installed, word) == []


def test_every_decision_is_one() -> None:
    names = [one.name for one in DECISIONS]
    assert names == sorted(set(names))
    assert {one.word for one in DECISIONS} == {OFFERED, REFUSED}
    assert [one.name for one in DECISIONS if (one.word == REFUSED) != bool(one.reason)] == []


def test_names_come_from_imports_and_attributes() -> None:
    content = """
from fastapi import Request
from open_webui.models.users import Users as Accounts, UserModel
from apps.webui.models.files import Files
from utils.misc import get_last_user_message
import open_webui.main
import open_webui.socket.main as sockets
from open_webui.main import app as webui_app

class Pipe:
    def pipe(self, body, __request__):
        from open_webui.constants import TASKS
        user = Accounts.get_user_by_id("u").settings.ui
        open_webui.main.get_models()
        sockets.get_event_emitter({})
        webui_app.state.config.WEBUI_URL
        self.request.app.state.MODELS["x"]
        __request__.app.state._state.get("MODELS")
        user.app.stated
        return TASKS.TITLE_GENERATION, Request.app
"""
    assert names_of(content) == {
        "open_webui.models.users.Users.get_user_by_id",
        "open_webui.models.users.UserModel",
        "open_webui.models.files.Files",
        "open_webui.utils.misc.get_last_user_message",
        "open_webui.main.get_models",
        "open_webui.main.app",
        "open_webui.socket.main.get_event_emitter",
        "open_webui.constants.TASKS.TITLE_GENERATION",
        "app.state.config.WEBUI_URL",
        "app.state.MODELS",
        "app.state._state",
    }


def test_the_names_of_the_corpus_are_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = [name for name in undecided(scan(CORPUS)) if not re.search("tomorrow|nothing", name)]
    assert left == []
    (tmp_path / "p.py").write_text(
        "from open_webui.models.users import Users\nfrom open_webui.config import X_Y"
    )
    (tmp_path / "q.py").write_text("from open_webui.models.users import Users, Nonsense\nx = (")
    assert main(str(tmp_path)) == 0
    (tmp_path / "q.py").write_text("from open_webui.models.users import Users, Nonsense")
    assert main(str(tmp_path)) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[-3:] == [
        "2 offered open_webui.models.users.Users",
        "1 setting open_webui.config.X_Y",
        "1 undecided open_webui.models.users.Nonsense",
    ]
