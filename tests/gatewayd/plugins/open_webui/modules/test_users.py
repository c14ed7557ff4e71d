import asyncio
import inspect

import pytest

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.modules.users import is_admin
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from gatewayd.plugins.runtime.call_context import current_asker
from tests.fakes.plugins.plugin_threads import at_home, load_at_home

USERS = "from open_webui.models.users import Users, UserModel, User\n"


async def test_a_user_is_found_plainly_awaited_and_in_a_thread(installed: InstalledModules) -> None:
    module, noted = await load_at_home(
        USERS
        + """
import asyncio
def plain(): return Users.get_user_by_id("ada")
async def awaited(): return await Users.get_user_by_id("ada")
async def threaded(): return await asyncio.to_thread(Users.get_user_by_id, "ada")
async def gathered():
    return await asyncio.gather(Users.get_user_by_id("ada"), Users.get_user_by_email("bob@example.org"))
"""
    )
    assert noted.missing == []
    for user in (
        await asyncio.to_thread(module.plain),
        await at_home(module.awaited),
        await at_home(module.threaded),
    ):
        assert isinstance(user, module.UserModel)
        assert (user.name, user.email, user.role) == ("Ada", "ada@example.org", "admin")
        assert user.settings.ui == {"theme": "dark"}
    assert [user.id for user in await at_home(module.gathered)] == ["ada", "bob"]


async def test_it_is_told_from_a_coroutine_function(installed: InstalledModules) -> None:
    module, _ = await load_at_home(USERS)
    assert not inspect.iscoroutinefunction(module.Users.get_user_by_id)
    user = await asyncio.to_thread(module.Users.get_user_by_id, "ada")
    assert hasattr(user, "__await__")
    assert inspect.isawaitable(user)
    assert await user is user
    assert await asyncio.to_thread(module.Users.get_user_by_id, "nobody") is None


async def test_a_session_is_taken_and_left_aside(installed: InstalledModules) -> None:
    module, _ = await load_at_home(USERS)
    user = await asyncio.to_thread(lambda: module.Users.get_user_by_id("ada", db=object()))
    assert user.id == "ada"
    user = await asyncio.to_thread(lambda: module.Users.get_user_by_id(id="ada", db=None))
    assert user.id == "ada"


async def test_a_user_mapping_makes_a_user(installed: InstalledModules) -> None:
    module, _ = await load_at_home(USERS)
    user = module.User(id="x", name="X", role="user", valves=object(), settings={"ui": {}})
    assert (user.id, user.role) == ("x", "user")
    assert dict(user)["name"] == "X"


async def test_lists_of_users(installed: InstalledModules) -> None:
    users = (await load_at_home(USERS))[0].Users
    found = await asyncio.to_thread(users.get_users)
    assert [user.id for user in found["users"]] == ["ada", "bob"]
    assert found["total"] == 2
    found = await asyncio.to_thread(lambda: users.get_users({"query": "bo"}, skip=0, limit=5))
    assert [user.id for user in found["users"]] == ["bob"]
    found = await asyncio.to_thread(lambda: users.get_users(skip=1, limit=1))
    assert ([user.id for user in found["users"]], found["total"]) == (["bob"], 2)
    assert await asyncio.to_thread(users.get_num_users) == 2
    assert (await asyncio.to_thread(users.get_first_user)).id == "ada"
    assert (await asyncio.to_thread(users.get_super_admin_user)).id == "ada"
    several = await asyncio.to_thread(users.get_users_by_user_ids, ["bob", "nobody", "ada"])
    assert [user.id for user in await several] == ["bob", "ada"]


async def test_settings_are_changed_and_nothing_else(installed: InstalledModules, host: PluginHost) -> None:
    users = (await load_at_home(USERS))[0].Users
    user = await asyncio.to_thread(users.update_user_settings_by_id, "ada", {"functions": {"valves": {}}})
    assert user.settings.ui == {"theme": "dark"}
    assert user.settings.functions == {"valves": {}}
    settings = await asyncio.to_thread(users.get_user_settings_by_id, "ada")
    assert settings.functions == {"valves": {}}
    user = await asyncio.to_thread(users.update_user_by_id, "ada", {"settings": {"ui": {}}})
    assert user.settings.ui == {}
    for change in ({"role": "admin"}, {"settings": {}, "role": "admin"}, {}):
        with pytest.raises(NotProvidedError, match="is not provided by this gateway"):
            await asyncio.to_thread(users.update_user_by_id, "bob", change)
    assert (await host.users.find("bob") or {})["role"] == "user"


async def test_a_method_that_is_not_there_is_an_attribute_that_is_not_there(
    installed: InstalledModules,
) -> None:
    users = (await load_at_home(USERS))[0].Users
    assert not hasattr(users, "get_users_by_moon")
    with pytest.raises(AttributeError) as raised:
        users.delete_user_by_id()
    assert str(raised.value) == (
        "open_webui.models.users.Users.delete_user_by_id is not provided by this gateway"
    )


async def test_groups(installed: InstalledModules) -> None:
    groups = (await load_at_home("from open_webui.models.groups import Groups"))[0].Groups
    assert [g.id for g in await asyncio.to_thread(groups.get_groups_by_member_id, "bob")] == ["g1"]
    assert await asyncio.to_thread(groups.get_groups_by_member_id, "ada") == []
    assert [g.id for g in await asyncio.to_thread(groups.get_groups)] == ["g1"]
    assert await asyncio.to_thread(lambda: groups.get_groups({"member_id": "ada"})) == []
    assert (await asyncio.to_thread(groups.get_group_by_id, "g1")).name == "readers"
    assert await asyncio.to_thread(groups.get_group_by_id, "g2") is None


async def test_an_administrator_is_one_by_account_or_by_the_call(host: PluginHost) -> None:
    assert await is_admin(host, {"id": "ada", "role": "user"})
    assert not await is_admin(host, {"id": "bob", "role": "admin"})
    operator = User("host:control", "", "operator", Role.ADMIN)
    assert not await is_admin(host, "host:control")
    current_asker.set(Actor(operator, CredentialKind.CONTROL, (), {}))
    assert await is_admin(host, "host:control")
    assert not await is_admin(host, "host:other")
