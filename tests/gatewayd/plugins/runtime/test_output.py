"""What plugins print, and the gateway's own logging."""

import io
import logging
import sys

import pytest

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.output import LoggingGuard, PluginOutput, capture_output
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of


def test_lines_of_plugins_are_logged_and_the_rest_is_written(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    output = PluginOutput(stream, logging.INFO)
    caplog.set_level(logging.INFO, "gatewayd.plugins.runtime.output")
    output.write("mine\n")
    context = plugin_context(CallInfo(PluginFamily.TOOL, "t"))
    context.run(output.write, "a")
    context.run(output.writelines, ["b\nc", "\n", "\n", "x" * 10_000])
    assert stream.getvalue() == "mine\n"
    shown = [
        (vars(record)["plugin"], vars(record)["family"], vars(record)["text"]) for record in caplog.records
    ]
    assert shown == [("t", "tool", text) for text in ("ab", "c", "x" * 8192)]
    assert output.getvalue() == "mine\n"


@pytest.mark.timeout(20)
def test_a_huge_text_without_an_end_is_written_in_no_time() -> None:
    output = PluginOutput(io.StringIO(), logging.DEBUG)
    context = plugin_context(CallInfo(PluginFamily.TOOL, "t"))
    assert context.run(output.write, "x" * 2**27) == 2**27


async def test_plugins_print_from_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatewayd.plugins.runtime.output")
    content = """
        import asyncio, sys
        print("module")
        class Filter:
            def __init__(self):
                print("init")
            def inlet(self, body):
                print("plain", file=sys.stderr)
            async def outlet(self, body):
                print("async")
                await asyncio.to_thread(print, "thread")
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        await loaded.call("inlet", scope_of(), {"body": {}})
        await loaded.call("outlet", scope_of(), {"body": {}})
    lines = [vars(record) for record in caplog.records if record.name == "gatewayd.plugins.runtime.output"]
    assert [line["text"] for line in lines] == ["module", "init", "plain", "async", "thread"]
    assert {(line["plugin"], line["family"]) for line in lines} == {("p", "function")}


def test_the_streams_are_put_back() -> None:
    before = sys.stdout, sys.stderr
    with capture_output():
        assert isinstance(sys.stdout, PluginOutput)
    assert (sys.stdout, sys.stderr) == before


async def test_a_plugin_cannot_set_up_the_logging_of_the_gateway() -> None:
    root, ours = logging.getLogger(), logging.getLogger("gatewayd.test.output")
    before = (list(root.handlers), root.level)
    content = """
        import logging, logging.config
        logging.basicConfig(level=logging.DEBUG, force=True)
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
        logging.disable(logging.CRITICAL)
        class Filter:
            pass
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
    assert (root.handlers, root.level) == before
    assert not ours.disabled
    assert root.manager.disable == 0


def test_loads_that_overlap_share_what_was_before() -> None:
    root, guard = logging.getLogger(), LoggingGuard()
    before = root.level
    with guard():
        root.setLevel(1)
        with guard():
            root.setLevel(2)
    assert root.level == before


async def test_a_plugin_that_takes_over_the_root_logger_can_still_print() -> None:
    content = """
        import logging, sys
        root = logging.getLogger()
        root.handlers.clear()
        root.addHandler(logging.StreamHandler(sys.stderr))
        root.setLevel(logging.DEBUG)
        print("module")
        logging.getLogger(__name__).info("logged")
        class Filter:
            def inlet(self, body):
                return body
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert loaded.has("inlet")


async def test_a_plugin_does_not_set_up_the_root_logger_for_a_moment() -> None:
    root, set_up = logging.getLogger(), logging.basicConfig
    before = list(root.handlers), root.level
    content = """
        import logging
        logging.basicConfig(level=1, force=True)
        seen = list(logging.getLogger().handlers), logging.getLogger().level
        class Filter:
            def inlet(self, body):
                logging.basicConfig(level=1, force=True)
                return seen
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == before
        assert (list(root.handlers), root.level) == before
    assert logging.basicConfig is set_up


def test_others_set_up_the_root_logger() -> None:
    root = logging.getLogger()
    before = root.handlers, root.level
    root.handlers = []
    try:
        with capture_output():
            logging.basicConfig(level=7)
            assert (len(root.handlers), root.level) == (1, 7)
    finally:
        root.handlers, _ = before
        root.setLevel(before[1])
