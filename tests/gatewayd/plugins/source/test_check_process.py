"""Sources that are checked in processes of their own."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.source import check_process
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.requirements import InstallationOptions
from tests.fakes.plugins.wheels import requiring, wheel

NOWHERE = InstallationOptions(Path("/nonexistent"))
GOOD = "print('noise')\nclass Pipe:\n    def pipe(self, body): ...\n"


async def test_a_report_comes_back_whatever_is_printed() -> None:
    report = await SourceChecker(NOWHERE, 20.0).check("hello", GOOD)
    assert (report.error, report.kind, report.methods[0].name) == (None, "pipe", "pipe")
    assert report.methods[0].parameters[0].name == "body"


async def test_a_source_that_ends_its_process() -> None:
    report = await SourceChecker(NOWHERE, 20.0).check("hello", "import os\nos._exit(3)\nclass Pipe: ...\n")
    assert report.error == "plugin hello: it ended the process that loaded it with status 3"
    killed = "import os\nos.kill(os.getpid(), 9)\nclass Pipe: ...\n"
    report = await SourceChecker(NOWHERE, 20.0).check("hello", killed, PluginFamily.FUNCTION)
    assert report.error == "function hello: it ended the process that loaded it by SIGKILL"


async def test_threads_that_never_end_keep_nobody_waiting() -> None:
    source = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n" + GOOD
    assert (await SourceChecker(NOWHERE, 20.0).check("hello", source)).loads


async def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_process, "PROGRAM", "import time; time.sleep(100)")
    monkeypatch.setattr(check_process, "START_SECONDS", 0.3)
    report = await SourceChecker(NOWHERE, 0.2).check("hello", GOOD)
    assert report.error == "plugin hello: it did not load within 0.2 s"


async def test_a_caller_that_leaves_ends_the_process(tmp_path: Path) -> None:
    mark, source = (
        tmp_path / "pid",
        "import os, time\nopen({!r}, 'w').write(str(os.getpid()))\ntime.sleep(100)\n",
    )
    checker = SourceChecker(NOWHERE, 50.0)
    task = asyncio.ensure_future(checker.check("hello", source.format(str(mark)) + GOOD))
    while not (mark.exists() and mark.read_text()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{mark.read_text()}").exists()


async def test_settings_and_packages_are_there(tmp_path: Path) -> None:
    async def settings() -> Mapping[str, Any]:
        return {"ENABLE_X": True, "A_PATH": Path("/x")}

    (tmp_path / "my_package.py").write_text("")
    source = "import my_package\nfrom open_webui.config import ENABLE_X\nassert ENABLE_X.value\n" + GOOD
    with_packages = InstallationOptions(tmp_path, is_enabled=True)
    assert (await SourceChecker(with_packages, 20.0, settings).check("hello", source)).loads
    assert not (await SourceChecker(NOWHERE, 20.0, settings).check("hello", source)).loads
    assert not (await SourceChecker(with_packages, 20.0).check("hello", source)).loads


@pytest.mark.slow
async def test_a_check_installs_what_a_load_would_and_keeps_nothing(tmp_path: Path) -> None:
    wheel(tmp_path, "gatewayd_test_checked")
    packages = tmp_path / "packages"
    installation = InstallationOptions(packages, True, ("--no-index", "--find-links", str(tmp_path)))
    report = await SourceChecker(installation, 20.0).check("hello", requiring("gatewayd_test_checked"))
    assert (report.error, report.missing) == (None, ())
    assert not packages.exists()
    report = await SourceChecker(installation, 20.0).check("hello", requiring("gatewayd_absent_package"))
    assert "its packages cannot be installed (gatewayd_absent_package)" in (report.error or "")
    report = await SourceChecker(NOWHERE, 20.0).check("hello", requiring("gatewayd_absent_package"))
    assert "the plugin requires gatewayd_absent_package: install it" in (report.error or "")
    assert [one.requirement for one in report.missing] == ["gatewayd_absent_package"]


async def test_valves_are_checked_with_the_source() -> None:
    source = (
        "from pydantic import BaseModel\nclass Filter:\n    class Valves(BaseModel):\n        n: int = 1\n"
    )
    checker = SourceChecker(InstallationOptions(Path("/nonexistent")), 20.0)
    good = await checker.check("f", source, PluginFamily.FUNCTION, {"n": "3"})
    assert (good.error, good.values_error) == (None, None)
    bad = await checker.check("f", source, PluginFamily.FUNCTION, {"n": "many"})
    assert (bad.loads, bad.values_field) == (True, "n")
    assert "n" in (bad.values_error or "")
