"""The kind of a source, and the changes under which it runs."""

import ast
import textwrap

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.tools.arguments import parse_arguments
from gatewayd.plugins.records import PluginFamily, PluginKind
from gatewayd.plugins.source import code as source_code

MISMATCH = "AST constructor recursion depth mismatch (before=21, after=24)"


def run(content: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "filter_x", source_code.AWAIT_NAME: source_code.make_awaitable}
    exec(source_code.prepare(textwrap.dedent(content).lstrip("\n"), "x.py").code, names)
    return names


async def test_await_takes_what_cannot_be_awaited() -> None:
    names = run("""
        class Filter:
            async def inlet(self):
                async def one():
                    return 1
                return [await one(), await 2, await None, [await x for x in (3, one())]]
    """)
    assert await names["Filter"]().inlet() == [1, 2, None, [3, 1]]  # type: ignore[operator]


def test_the_docstring_stays_first_and_lines_stay_where_they_are() -> None:
    names = run('''
        """
        title: X
        """
        from __future__ import annotations
        import sys
        doc = __doc__
        line = sys._getframe().f_lineno
    ''')
    assert names["doc"] == "\ntitle: X\n"
    assert names["line"] == 7


@pytest.mark.parametrize("module", ["utils.misc", "apps.webui", "main", "config"])
def test_former_modules_of_the_host_are_found_where_they_are_now(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="open_webui"):
        run(f"def f():\n    from {module} import x\nf()")


def test_relative_names_that_only_look_alike_are_left() -> None:
    with pytest.raises(ModuleNotFoundError, match="utilsx"):
        run("from utilsx import y")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("def f(:\n", r"SyntaxError in line 1: .*'def f\(:'"),
        ("x = 1\n  y = 2\n", "SyntaxError in line 2: unexpected indent"),
        ("a\0b", "null bytes"),
        ("return 1", "line 1.*outside function"),
        ("(" * 1000 + ")" * 1000, "(too many nested|recursion|MemoryError)"),
    ],
)
def test_what_is_not_python_is_named_with_its_line(content: str, sentence: str) -> None:
    with pytest.raises(GatewayError, match=sentence) as caught:
        source_code.prepare(content, "x.py")
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == "content"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["Tools"], (PluginFamily.TOOL, PluginKind.TOOL)),
        (["Action", "Filter"], (PluginFamily.FUNCTION, PluginKind.FILTER)),
        (["Filter", "Pipe"], (PluginFamily.FUNCTION, PluginKind.PIPE)),
        (["Action"], (PluginFamily.FUNCTION, PluginKind.ACTION)),
    ],
)
def test_the_class_decides_the_kind(names: list[str], kind: tuple[PluginFamily, PluginKind]) -> None:
    content = "\n".join(f"class {name}: pass" for name in names)
    assert source_code.detect_kind(content) == kind
    assert source_code.guess_kind(content, kind[0]) is kind[1]


def test_a_pipelines_file_is_refused_before_it_runs() -> None:
    prepared = source_code.prepare("class Pipeline: pass\nraise SystemExit", "x.py")
    with pytest.raises(GatewayError, match="for a Pipelines server"):
        source_code.refuse_pipelines(prepared.classes)
    source_code.refuse_pipelines(frozenset({"Pipeline", "Filter"}))


@pytest.mark.parametrize(
    ("content", "family", "sentence"),
    [
        ("class Tools: pass", PluginFamily.FUNCTION, "it is a tool and not a function"),
        ("class Pipe: pass", PluginFamily.TOOL, "it is a function and not a tool"),
        ("class Pipeline: pass", PluginFamily.FUNCTION, "Pipelines server"),
        ("class Event: pass", PluginFamily.FUNCTION, "class Event, a function for system events"),
    ],
)
def test_the_wrong_family_is_told(content: str, family: PluginFamily, sentence: str) -> None:
    with pytest.raises(GatewayError, match=sentence):
        source_code.guess_kind(content, family)


def test_a_source_without_class_is_refused() -> None:
    with pytest.raises(GatewayError, match="no class Tools or Pipe or Filter or Action"):
        source_code.detect_kind("x = 1")


def test_ids_are_identifiers_in_lower_case() -> None:
    assert source_code.check_id("My_Filter2") == "my_filter2"
    for bad in ("", "2x", "a-b", "a b", "../x", "x" * 129):
        with pytest.raises(GatewayError) as caught:
            source_code.check_id(bad)
        assert caught.value.param == "id"


def test_digests_tell_sources_apart() -> None:
    assert source_code.digest("a") == source_code.digest("a") != source_code.digest("b\udc80")


class Disturbed:
    """Fails as `ast.parse` does when threads disturb each other, as often as it is told."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.parse = ast.parse

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.left:
            self.left -= 1
            raise SystemError(MISMATCH)
        return self.parse(*args, **kwargs)  # type: ignore[call-overload]


def test_what_threads_disturb_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "parse", Disturbed(2))
    assert isinstance(source_code.parse("x = 1").body[0], ast.Assign)
    monkeypatch.setattr(ast, "parse", Disturbed(2))
    assert parse_arguments("{'a': 1}") == {"a": 1}


def test_what_fails_each_time_is_raised() -> None:
    disturbed = Disturbed(source_code.MAX_ATTEMPTS)
    with pytest.raises(SystemError, match="mismatch"):
        source_code.retry_ast_parse(disturbed)
    assert disturbed.left == 0
