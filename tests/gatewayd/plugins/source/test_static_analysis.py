"""What a source tells without being run."""

import pytest

from gatewayd.errors import GatewayError
from gatewayd.plugins.source.static_analysis import ImportedName, read_outline

SOURCE = """
import os, requests
import open_webui.models.users as users
from typing import TYPE_CHECKING
from apps.webui.models.files import Files
from pkg.deep import *
from . import near
if TYPE_CHECKING:
    import for_types
else:
    import not_for_types
try:
    import maybe
    def inner():
        import innermost
except ImportError:
    import instead
try:
    import needed
finally:
    pass

class Pipe:
    import of_class

    async def pipe(self):
        from late import name
        await emit({"type": "status", "data": {}})
        await emit({"data": 1, "type": "message"})
        await emit({"type": "status", "data": 2})
        return {"type": "text", "text": "x"}, {"type": kind, "data": 1}, {"type": 5, "data": 1}, {**a}
"""


def test_imports_are_found_with_what_guards_them() -> None:
    found = {one.full: one.guarded for one in read_outline(SOURCE).imports}
    assert found == {
        "requests": False,
        "open_webui.models.users": False,
        "open_webui.apps.webui.models.files.Files": False,
        "pkg.deep": False,
        "not_for_types": False,
        "maybe": True,
        "innermost": True,
        "instead": False,
        "needed": False,
        "of_class": False,
        "late.name": True,
    }


def test_the_package_of_a_name() -> None:
    assert ImportedName("a.b", "c", False).package == "a"


def test_events_are_mappings_with_a_type_and_data() -> None:
    assert read_outline(SOURCE).events == ("status", "message")


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(GatewayError, match="SyntaxError in line 1"):
        read_outline("x = (")
