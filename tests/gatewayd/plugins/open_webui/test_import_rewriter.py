import ast
import sys
import traceback
from pathlib import Path

import pytest

from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.import_rewriter import obtain, unguarded_names
from gatewayd.plugins.open_webui.placeholders import NotProvidedError, PlaceholderType
from tests.fakes.plugins.plugin_threads import load, load_at_home


def test_unguarded_names() -> None:
    tree = ast.parse(
        '''"""Doc."""
import os, open_webui.config
from open_webui.models.users import Users, UserModel as U
from other import thing
try:
    from open_webui.a import guarded
except ImportError:
    from open_webui.b import fallback
try:
    from open_webui.c import tried
except ValueError:
    pass
try:
    from open_webui.d import tried2
except (ValueError, ModuleNotFoundError):
    pass
with contextlib.suppress(ImportError):
    from open_webui.e import suppressed
def function():
    from open_webui.f import lazy
class Tools:
    from open_webui.g import member
    def method(self):
        import open_webui.h
if True:
    from open_webui.i import conditional
from . import own
from open_webui.j import *
'''
    )
    before = ast.dump(tree)
    assert unguarded_names(tree) == [
        "open_webui.config",
        "open_webui.models.users.Users",
        "open_webui.models.users.UserModel",
        "open_webui.b.fallback",
        "open_webui.c.tried",
        "open_webui.g.member",
        "open_webui.i.conditional",
    ]
    assert ast.dump(tree) == before


async def test_missing_names_are_placeholders_and_listed(installed: InstalledModules) -> None:
    module, noted = await load_at_home(
        """
from open_webui.models.users import Users, Moons as M
from open_webui.models.auths import Auths
import open_webui.models.tags as tags
import open_webui.utils.oauth
from open_webui import models, socket
"""
    )
    assert noted.missing == [
        "open_webui.models.users.Moons",
        "open_webui.models.auths.Auths",
        "open_webui.models.tags",
        "open_webui.utils.oauth",
        "open_webui.socket",
    ]
    for placeholder in (module.M, module.Auths, module.tags, module.socket):
        assert isinstance(placeholder, PlaceholderType)
    with pytest.raises(NotProvidedError, match=r"open_webui\.models\.auths\.Auths\.get is not provided"):
        module.Auths.get("x")
    assert module.Users.get_user_by_id
    assert module.open_webui.models is module.models


async def test_a_plugins_own_ways_out_are_taken(installed: InstalledModules) -> None:
    module, noted = await load_at_home(
        """
try:
    from open_webui.models.auths import Auths
except ImportError as error:
    Auths, first = None, error
try:
    from open_webui.models.users import Moons
except ImportError as error:
    Moons, second = None, error
def lazy():
    from open_webui.models.auths import Auths
    return Auths
"""
    )
    assert noted.missing == []
    assert module.Auths is None
    assert module.Moons is None
    assert type(module.first) is ModuleNotFoundError
    assert type(module.second) is ImportError
    with pytest.raises(ImportError):
        module.lazy()


async def test_a_placeholder_is_seen_by_its_own_plugin_alone(installed: InstalledModules) -> None:
    first, noted = await load_at_home("from open_webui.models.auths import Auths", "first")
    assert noted.plugin_id == "first"
    assert isinstance(first.Auths, PlaceholderType)
    assert not [name for name in sys.modules if name.startswith("open_webui.models.auths")]
    second, noted = await load_at_home(
        """
try:
    from open_webui.models.auths import Auths
except ImportError:
    Auths = "own"
""",
        "second",
    )
    assert (second.Auths, noted.missing) == ("own", [])


async def test_a_plugin_may_guard_a_name_that_it_also_needs(installed: InstalledModules) -> None:
    module, noted = await load_at_home(
        """
from open_webui.models.auths import Auths
try:
    from open_webui.models.auths import Auths as Again
except ImportError:
    Again = None
"""
    )
    assert noted.missing == ["open_webui.models.auths.Auths"]
    assert module.Again is None


def test_lines_and_the_docstring_stay_where_they_are() -> None:
    module, noted = load(
        '"""Title."""\nfrom open_webui.x import y\n\n\ndef f():\n    raise ValueError("here")\n'
    )
    assert module.__doc__ == "Title."
    assert noted.missing == ["open_webui.x.y"]
    with pytest.raises(ValueError, match="here") as raised:
        module.f()
    assert traceback.extract_tb(raised.value.__traceback__)[-1].lineno == 6


def test_nothing_is_noted_outside_of_loading() -> None:
    assert isinstance(obtain("open_webui.x", "y"), PlaceholderType)


async def test_errors_of_a_module_that_is_there_are_not_hidden(
    installed: InstalledModules, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="on the loop of the daemon"):
        load("from open_webui.env import RAG_TOP_K")
    module, noted = await load_at_home("from open_webui.env import RAG_TOP_K, RAG_MOON")
    assert module.RAG_TOP_K == 4
    assert noted.missing == ["open_webui.env.RAG_MOON"]
