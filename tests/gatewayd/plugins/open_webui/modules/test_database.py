from typing import Any

import pytest

from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


async def test_a_session_is_passed_on_and_not_used(installed: InstalledModules) -> None:
    module, noted = await load_at_home(
        "from open_webui.internal.db import get_db, get_async_db_context\n"
        "from open_webui.models.users import Users\n"
    )
    assert noted.missing == []

    async def later() -> Any:
        async with module.get_async_db_context() as db:
            return await module.Users.get_user_by_id("ada", db=db)

    def now() -> Any:
        with module.get_db() as db:
            found = module.Users.get_user_by_id("ada", db=db)
            with pytest.raises(NotProvidedError, match=r"session .* \(query\) is not provided"):
                db.query("select 1")
            return found

    assert (await at_home(later)).name == (await in_thread(now)).name == "Ada"
