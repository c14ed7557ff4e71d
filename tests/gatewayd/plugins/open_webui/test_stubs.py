import inspect
from typing import Any

import pytest

from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import load_at_home


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.models.memories import Memories\n"
            "from open_webui.models.folders import Folders\n"
            "from open_webui.models.messages import Messages\n"
            "from open_webui.models.feedbacks import Feedbacks\n"
            "from open_webui.models.skills import Skills, SkillForm\n"
            "from open_webui.models.notes import Notes\n"
            "from open_webui.models.prompts import Prompts\n"
            "from open_webui.models.channels import Channels\n"
            "from open_webui.routers import memories as routes\n"
        )
    )[0]


@pytest.mark.parametrize(
    ("table", "lists", "finds", "changes"),
    [
        ("Memories", "get_memories_by_user_id", "get_memory_by_id", "insert_new_memory"),
        ("Folders", "get_folders_by_user_id", "get_folder_by_id_and_user_id", "insert_new_folder"),
        ("Messages", "get_messages_by_channel_id", "get_message_by_id", "insert_new_message"),
        ("Feedbacks", "get_all_feedbacks", "get_feedback_by_id", "insert_new_feedback"),
        ("Skills", "get_skills_by_user_id", "get_skill_by_name", "insert_new_skill"),
        ("Notes", "get_notes_by_user_id", "get_note_by_id", "insert_new_note"),
        ("Prompts", "get_prompts", "get_prompt_by_command", "insert_new_prompt"),
        ("Channels", "get_channels", "get_channel_by_id", "insert_new_channel"),
    ],
)
async def test_looks_find_nothing_and_changes_are_refused(
    module: Any, table: str, lists: str, finds: str, changes: str
) -> None:
    there = getattr(module, table)
    found = getattr(there, lists)("ada")
    assert found == []
    assert await found == []
    assert getattr(there, finds)("x", "ada") is None
    with pytest.raises(NotProvidedError, match=f"{table}.{changes} is not provided by this gateway"):
        getattr(there, changes)("ada", "text")
    assert not hasattr(there, "no_such_method")


async def test_memory_routes(module: Any) -> None:
    routes = module.routes
    assert await routes.get_memories(user=None) == []
    assert await routes.query_memory(None, routes.QueryMemoryForm(content="x", k=3), None) is None
    assert inspect.iscoroutinefunction(routes.add_memory)
    for name in ("add_memory", "update_memory_by_id", "delete_memory_by_id", "delete_memory_by_user_id"):
        with pytest.raises(NotProvidedError, match=f"memories.{name} is not provided"):
            await getattr(routes, name)(None, routes.AddMemoryForm(content="x"), None)
    assert routes.MemoryUpdateModel().content is None
    assert routes.Memories.get_memories() == []
