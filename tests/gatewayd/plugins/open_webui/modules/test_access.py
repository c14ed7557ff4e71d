from types import SimpleNamespace
from typing import Any

import pytest

from gatewayd.plugins.open_webui.finder import InstalledModules
from tests.fakes.plugins.plugin_threads import in_thread, load_at_home


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.utils.access_control import has_permission, get_permissions, has_access\n"
        )
    )[0]


async def test_permissions(module: Any) -> None:
    assert await in_thread(module.has_permission, "ada", "chat.delete", {}) is True
    assert await in_thread(module.has_permission, "bob", "chat.delete") is False
    assert await in_thread(module.has_permission, "ada", "chat") is False
    assert await in_thread(module.has_permission, "ada", "no.such.thing") is False
    assert await in_thread(module.has_permission, "nobody", "chat.delete") is False
    assert await in_thread(module.get_permissions, "bob", {}) == {"chat": {"delete": False}}
    assert await in_thread(module.get_permissions, "nobody") == {}


async def test_old_access(module: Any) -> None:
    control = {"read": {"user_ids": ["ada"], "group_ids": ["g1"]}, "write": {"user_ids": []}}
    access = module.has_access
    assert await in_thread(access, "ada", "read", control) is True
    assert await in_thread(access, "bob", "read", control) is True
    assert await in_thread(lambda: access("bob", "read", control, user_group_ids=["g2"])) is False
    assert await in_thread(access, "ada", "write", control) is False
    assert await in_thread(access, "eve", "read", None) is True
    assert await in_thread(access, "eve", "write", None) is False


async def test_grants(module: Any) -> None:
    grants = [
        {"principal_type": "user", "principal_id": "*", "permission": "read"},
        SimpleNamespace(principal_type="group", principal_id="g1", permission="write"),
    ]
    access = module.has_access
    assert await in_thread(access, "eve", "read", grants) is True
    assert await in_thread(access, "bob", "write", grants) is True
    assert await in_thread(access, "ada", "write", grants) is False
    assert await in_thread(access, "ada", "read", []) is False
