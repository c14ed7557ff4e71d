"""Loading: modules, instances, bounds of time, and what is told when it fails."""

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.plugins.records import PluginFamily, PluginKind
from gatewayd.plugins.runtime import loader
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.loader import invalid_source, module_name
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of

pytestmark = pytest.mark.timeout(30)


async def fail(content: str, **options: Any) -> PluginError:
    plugin = plugin_of("p", content)
    async with make_registry(plugin, **options) as plugged:
        with pytest.raises(PluginError) as caught:
            await plugged.registry.loaded(plugin.family, "p")
    return caught.value


async def test_the_module_is_known_by_name_has_a_file_and_its_docstring() -> None:
    content = '''
        """
        title: T
        """
        import sys
        from pathlib import Path
        TEXT, NAME = __doc__, __name__
        FOUND = sys.modules[__name__].__dict__ is globals()
        class Filter:
            def __init__(self):
                self.text = Path(__file__).read_text()
    '''
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert (loaded.value("TEXT"), loaded.value("NAME")) == ("\ntitle: T\n", "function_p")
        assert loaded.value("FOUND")
        assert loaded.value("text").startswith('"""\ntitle: T')
        assert module_name(PluginFamily.FUNCTION, "p") in sys.modules
        assert loaded.plugin.manifest == {"title": "T"}


async def test_classes_of_a_plugin_may_refer_to_each_other_by_text() -> None:
    content = """
        from __future__ import annotations
        from pydantic import BaseModel
        class Node(BaseModel):
            next: Node | None = None
        class Tools:
            def run(self, node: Node) -> Body: return node
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.TOOL, "p")
        (spec,) = loaded.plugin.specs
        assert spec["parameters"]["properties"]["node"]["type"] == "object"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("class Filter:\n    x = 1\n    y = z\n", r"filter p: NameError: name 'z' is not defined \(line 3\)"),
        (
            "class Filter:\n    def __init__(self):\n        raise KeyError('k')\n",
            r"filter p: KeyError: 'k' \(line 3\)",
        ),
        ("class Filter:\n    x = (\n", r"filter p: cannot read the source: SyntaxError in line 2"),
        ("class Pipeline: pass", "Pipelines server"),
        ("class Event:\n    def event(self, event): pass", "system events, which this gateway does not send"),
        ("x = 1", "no class Pipe or Filter or Action"),
        ("class Filter:\n    def __init__(self, needed): pass", "TypeError"),
        ("import sys\nclass Filter: pass\nsys.exit(3)", r"SystemExit: 3 \(line 3\)"),
        ("class Filter: pass\nraise KeyboardInterrupt", r"KeyboardInterrupt"),
    ],
)
async def test_a_failure_tells_what_happened_and_where(content: str, sentence: str) -> None:
    failure = await fail(content)
    assert re.search(sentence, failure.message)
    assert invalid_source(failure).kind is ErrorKind.INVALID_REQUEST
    assert "function_p" not in sys.modules


@pytest.mark.parametrize(
    "content",
    [
        "while True: pass\nclass Filter: pass",
        "class Filter:\n    def __init__(self):\n        while True: pass",
        "import time\nclass Filter: pass\nfor _ in range(1000): time.sleep(0.01)",
    ],
)
async def test_loading_has_a_bound(content: str) -> None:
    failure = await fail(content, timeout=0.2)
    assert failure.message == "filter p: it did not load within 0.2 s"


async def test_a_source_that_fails_leaves_the_former_module() -> None:
    good = plugin_of("p", "WHICH = 1\nclass Filter:\n    def inlet(self, body): return WHICH")
    async with make_registry(good) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        with pytest.raises(PluginError):
            await plugged.registry.probe(plugin_of("p", "class Filter:\n    x = y"))
        assert vars(sys.modules["function_p"])["WHICH"] == 1
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 1


async def test_the_kind_is_that_of_the_class_that_is_there() -> None:
    content = "Pipe = type('Pipe', (), {'pipe': lambda self, body: 'made'})"
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert loaded.plugin.kind is PluginKind.PIPE
        found = plugged.registry.find(PluginFamily.FUNCTION, "p")
        assert found is not None
        assert found.kind is PluginKind.PIPE


async def test_names_that_the_gateway_lacks_are_noted() -> None:
    content = """
        from open_webui.nothing.here import Something
        class Filter:
            pass
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert loaded.plugin.missing == ("open_webui.nothing.here.Something",)


@pytest.fixture
def halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package whose modules need each other: imported in two threads at once, one is seen half made."""
    package = tmp_path / "gatewayd_test_halves"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text(
        "import time\ntime.sleep(0.3)\nimport gatewayd_test_halves.second as second\nVALUE = second.VALUE\n"
    )
    (package / "second.py").write_text(
        "import time\nimport gatewayd_test_halves.first\ntime.sleep(0.3)\nVALUE = 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("gatewayd_test_halves")]:
        del sys.modules[name]


@pytest.mark.usefixtures("halves")
async def test_modules_of_plugins_run_one_after_the_other() -> None:
    content = "import gatewayd_test_halves.{0} as half\nclass Filter:\n    value = half.VALUE\n"
    plugins = [plugin_of(name, content.format(name)) for name in ("first", "second")]
    async with make_registry(*plugins) as plugged:
        loaded = [await plugged.registry.loaded(PluginFamily.FUNCTION, one.id) for one in plugins]
        assert [one.value("value") for one in loaded] == [2, 2]


async def test_a_module_that_hangs_does_not_hold_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "MAX_IMPORT_SECONDS", 0.2)
    hanging = plugin_of("a", "import time\nfor _ in range(3000): time.sleep(0.01)\nclass Filter: pass")
    others = [plugin_of(name, "class Filter: pass") for name in ("b", "c")]
    async with make_registry(hanging, *others, timeout=20) as plugged:
        for one in others:
            assert await plugged.registry.loaded(PluginFamily.FUNCTION, one.id)
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "a") is None


async def test_instances_are_made_at_the_same_time() -> None:
    content = """
        import threading
        TOGETHER = threading._gatewayd_test_barrier
        class Filter:
            def __init__(self):
                TOGETHER.wait(15)
    """
    threading._gatewayd_test_barrier = threading.Barrier(4)  # type: ignore[attr-defined]
    plugins = [plugin_of(f"p{number}", content) for number in range(4)]
    async with make_registry(*plugins) as plugged:
        for one in plugins:
            assert await plugged.registry.loaded(PluginFamily.FUNCTION, one.id)
    del threading._gatewayd_test_barrier  # type: ignore[attr-defined]


async def test_plugins_load_at_the_same_time() -> None:
    content = """
        import threading
        class Filter:
            pass
        assert threading.current_thread().name
    """
    plugins = [plugin_of(f"p{number}", content) for number in range(12)]
    async with make_registry(*plugins) as plugged:
        loads = (plugged.registry.loaded(PluginFamily.FUNCTION, one.id) for one in plugins)
        assert len({id(one) for one in await asyncio.gather(*loads)}) == 12
