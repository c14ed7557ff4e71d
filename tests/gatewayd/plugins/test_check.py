"""Checking one plugin in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gatewayd.plugins import check

PIPE = '''"""
title: Pipe
requirements: a, b
"""
import asyncio
print("printed")
from pydantic import BaseModel
from open_webui.models.users import Users
from open_webui.nowhere import Nothing

class Pipe:
    class Valves(BaseModel):
        key: str = ""
    def __init__(self):
        self.valves = self.Valves()
    def pipes(self):
        return []
    async def pipe(self, body, __user__, __event_emitter__=None):
        await __event_emitter__({"type": "status", "data": {"description": "x"}})
        await __event_emitter__({"type": "chat:completion"})
        await self.emit({"type": "status", "data": {}})
        kind = {"type": "text", "text": ""}
'''


def run(path: Path, *options: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "gatewayd.plugins.check", str(path), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_plugin_is_described(tmp_path: Path) -> None:
    path = tmp_path / "my_pipe.py"
    path.write_text(PIPE)
    status, report = run(path)
    assert status == 0, report
    assert (report["id"], report["family"], report["kind"]) == ("my_pipe", "function", "pipe")
    assert report["name"] == "Pipe"
    assert report["requirements"] == ["a", "b"]
    assert report["methods"] == {
        "pipe": {"parameters": ["__event_emitter__", "__user__", "body"], "async": True},
        "pipes": {"parameters": [], "async": False},
    }
    assert report["missing"] == ["open_webui.nowhere.Nothing"]
    assert sorted(report["events"]) == ["chat:completion", "status"]  # type: ignore[call-overload]
    assert "key" in report["valves"]["properties"]  # type: ignore[index]
    assert report["user_valves"] is None


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("p.py", "class Filter:\n    x = y", "filter p: NameError: name 'y' is not defined (line 2)"),
        ("p.py", "class Pipeline: pass", "Pipelines server"),
        ("p.py", "class Filter(", "SyntaxError in line 1"),
        ("a-b.py", "class Filter: pass", "cannot accept id"),
        ("p.py", "while True: pass\nclass Filter: pass", "did not load within 0.3 s"),
    ],
)
def test_what_does_not_load_says_why(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    status, report = run(path, "--timeout", "0.3")
    assert status == check.FAILED
    assert sentence in str(report["error"])


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    status, report = run(tmp_path / "none.py")
    assert status == check.FAILED
    assert "No such file" in str(report["error"])


def test_types_of_events_are_read_off_the_source() -> None:
    content = (
        'emitter({"type": "a"})\nx = {"type": "b", "data": 1}\ny = {"type": "c"}\nz = {"type": t, "data": 2}'
    )
    assert sorted(check.event_types(content)) == ["a", "b"]


def test_there_is_no_gateway_to_ask() -> None:
    with pytest.raises(AttributeError, match="no gateway"):
        check.Absent().users  # noqa: B018
