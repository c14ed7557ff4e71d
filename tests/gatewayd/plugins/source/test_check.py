"""Sources that are loaded in order to tell about them, here in this process."""

import sys
import textwrap
from typing import Any

import pytest

from gatewayd.plugins.source.check import inspect_source
from gatewayd.plugins.source.check_report import (
    MissingImport,
    ReportedEvent,
    SourceCheckReport,
    SourceCheckRequest,
)

FILTER = '''
    """
    title: Loud
    version: 1.2
    requirements: pydantic>=2, surely-not-installed==1, [
    """
    from open_webui.env import SRC_LOG_LEVELS, ENABLE_X
    from open_webui.models.users import Users, Nonsense
    from utils.misc import get_last_user_message
    from pydantic import BaseModel
    try:
        import absent_a
    except ImportError:
        absent_a = None


    class Filter:
        class Valves(BaseModel):
            priority: int = 0
            key: str

        class UserValves(BaseModel):
            loud: bool = True

        async def inlet(self, body, __user__, __event_emitter__=None, more=None):
            import absent_b
            await __event_emitter__({"type": "status", "data": {}})
            await __event_emitter__({"type": "own", "data": {}})
            return body

        def outlet(self, body, response, __nonsense__): ...
        def helper(self): ...
        def on_startup(self): ...
'''


async def looked(source: str, **fields: Any) -> SourceCheckReport:
    return await inspect_source(
        SourceCheckRequest(id="Loud", content=textwrap.dedent(source).lstrip("\n"), **fields)
    )


async def test_a_filter() -> None:
    report = await looked(FILTER, settings={"ENABLE_X": True})
    assert (report.id, report.family, report.kind, report.error) == ("loud", "function", "filter", None)
    assert (report.name, report.version) == ("Loud", "1.2")
    assert [method.name for method in report.methods] == ["inlet", "outlet", "on_startup"]
    assert [(one.name, one.required) for one in report.methods[0].parameters] == [
        ("body", True),
        ("__user__", True),
        ("__event_emitter__", False),
        ("more", False),
    ]
    assert report.missing == (
        MissingImport("open_webui.models.users.Nonsense", guarded=False),
        MissingImport("absent_a", guarded=True),
        MissingImport("absent_b", guarded=True),
    )
    assert report.events == (ReportedEvent("status", known=True), ReportedEvent("own", known=False))
    assert list((report.valves or {})["properties"]) == ["priority", "key"]
    assert list((report.user_valves or {})["properties"]) == ["loud"]
    required = [(one.requirement, one.version is None) for one in report.requirements]
    assert required == [("pydantic>=2", False), ("surely-not-installed==1", True), ("[", True)]
    assert report.problems[0] == "outlet requires __nonsense__, response, which the gateway does not pass"
    assert "must be set before it can run" in report.problems[1]
    assert "'key'" in report.problems[1]


async def test_nothing_of_the_names_stays() -> None:
    await looked(FILTER)
    assert not [name for name in sys.modules if name.partition(".")[0] == "open_webui"]
    assert not [one for one in sys.meta_path if type(one).__module__.startswith("gatewayd")]


async def test_a_setting_that_there_is_not_is_missing() -> None:
    assert MissingImport("open_webui.env.ENABLE_X", guarded=False) in (await looked(FILTER)).missing


async def test_a_tool() -> None:
    report = await looked("class Tools:\n    def a(self, town: str): ...\n    def _b(self): ...\n")
    assert (report.family, report.kind, [method.name for method in report.methods]) == ("tool", "tool", ["a"])
    assert (report.valves, report.problems) == (None, ())


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("class Tools:\n    pass\n", "no public method"),
        ("class Action:\n    def run(self): ...\n", "no method action"),
        ("class Filter:\n    pass\n", "no method inlet or stream or outlet"),
    ],
)
async def test_what_loads_and_does_nothing(source: str, problem: str) -> None:
    [told] = (await looked(source)).problems
    assert problem in told


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = (", "SyntaxError"),
        ("x = 1", "no class Tools or Pipe"),
        ('"""\nisolation: jail\n"""\nclass Pipe: ...', "pipe loud: its header asks for isolation 'jail'"),
        ("class Pipeline: ...", "Pipelines server"),
        ("class Pipe:\n    x = 1 / 0\n", "pipe loud: ZeroDivisionError: division by zero (line 2)"),
        ("import absent_c\nclass Pipe: ...", "No module named 'absent_c'"),
        (
            "from open_webui.models.users import Users\nUsers.get_user_by_id('u')\nclass Pipe: ...",
            "no gateway runs",
        ),
    ],
)
async def test_what_does_not_load(source: str, error: str) -> None:
    report = await looked(source)
    assert error in (report.error or "")
    assert not report.loads


async def test_a_family_that_it_is_not_of() -> None:
    report = await looked("class Tools:\n    def a(self): ...\n", family="function")
    assert "it is a tool and not a function" in (report.error or "")


async def test_an_id_that_is_none() -> None:
    report = await inspect_source(SourceCheckRequest(id="no-id", content="class Pipe: ...\n"))
    assert "cannot accept id" in (report.error or "")


async def test_what_takes_too_long() -> None:
    report = await looked("import time\nwhile True:\n    time.sleep(0.01)\nclass Pipe: ...\n", timeout=0.2)
    assert report.error == "pipe loud: it did not load within 0.2 s"


def test_what_has_no_error_loads() -> None:
    assert SourceCheckReport(id="a").loads
    assert not SourceCheckReport(id="a", error="no").loads
