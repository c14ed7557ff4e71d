"""Empty tables of features that the gateway lacks.

These are memories, folders, channels, ratings, skills, notes and prompts. Reads return nothing. Changes raise
NotProvidedError.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gatewayd.plugins.open_webui.awaitable_records import AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.placeholders import missing_name_sentence, raise_not_provided

MEMORY_ROUTES = "open_webui.routers.memories"


class EmptyTable:
    """A table without rows: `lists` return an empty list, `finds` return None, `changes` raise."""

    def __init__(self, name: str, lists: Sequence[str], finds: Sequence[str], changes: Sequence[str]) -> None:
        self._name = name
        for method in lists:
            setattr(self, method, _empty)
        for method in finds:
            setattr(self, method, _nothing)
        for method in changes:
            setattr(self, method, _make_refusal(f"{name}.{method}"))

    def __getattr__(self, attribute: str) -> Any:
        """Raise AttributeError with the full name of the missing attribute."""
        raise AttributeError(missing_name_sentence(f"{self.__dict__.get('_name', '')}.{attribute}"))


class MemoryModel(AnswerRecord):
    """A memory."""

    id: str
    user_id: str = ""
    content: str = ""
    updated_at: int = 0
    created_at: int = 0


class FolderModel(AnswerRecord):
    """A folder of chats."""

    id: str
    user_id: str = ""
    name: str = ""
    data: dict[str, Any] | None = None


class MessageModel(AnswerRecord):
    """A message of a channel."""

    id: str
    user_id: str = ""
    content: str = ""


class FeedbackModel(AnswerRecord):
    """A rating of an answer."""

    id: str
    user_id: str = ""
    type: str = ""
    data: dict[str, Any] | None = None


class SkillMeta(AnswerRecord):
    """Metadata of a skill."""

    tags: list[str] | None = None


class SkillModel(AnswerRecord):
    """A skill: instructions that a model reads on demand."""

    id: str
    user_id: str = ""
    name: str = ""
    description: str | None = None
    content: str = ""
    meta: SkillMeta | None = None
    is_active: bool = True


class NoteModel(AnswerRecord):
    """A note of a user."""

    id: str
    user_id: str = ""
    title: str = ""
    data: dict[str, Any] | None = None


class PromptModel(AnswerRecord):
    """A prompt with a command of its own."""

    command: str
    user_id: str = ""
    title: str = ""
    content: str = ""


class ChannelModel(AnswerRecord):
    """A channel."""

    id: str
    user_id: str = ""
    name: str = ""


class AddMemoryForm(AnswerRecord):
    """A memory to add."""

    content: str


class MemoryUpdateModel(AnswerRecord):
    """A memory to change."""

    content: str | None = None


class QueryMemoryForm(AnswerRecord):
    """A query for memories."""

    content: str
    k: int | None = 1


def _empty(*_: Any, **__: Any) -> AnswerList[Any]:
    return AnswerList()


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _make_refusal(name: str) -> Callable[..., Any]:
    def change(*_: Any, **__: Any) -> Any:
        raise_not_provided(name)

    return change


def _make_async_refusal(name: str) -> Callable[..., Any]:
    async def change(*_: Any, **__: Any) -> Any:
        raise_not_provided(name)

    return change


async def get_memories(*_: Any, **__: Any) -> AnswerList[Any]:
    """Return an empty list: there are no memories."""
    return AnswerList()


async def query_memory(*_: Any, **__: Any) -> None:
    """Return None: there are no memories."""
    return


def make_memories(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.memories`."""
    table = EmptyTable(
        "open_webui.models.memories.Memories",
        ("get_memories", "get_memories_by_user_id"),
        ("get_memory_by_id",),
        (
            "insert_new_memory",
            "update_memory_by_id",
            "update_memory_by_id_and_user_id",
            "delete_memory_by_id",
            "delete_memories_by_user_id",
            "delete_memory_by_id_and_user_id",
        ),
    )
    return {"Memories": table, "MemoryModel": MemoryModel}


def make_folders(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.folders`."""
    table = EmptyTable(
        "open_webui.models.folders.Folders",
        (
            "get_folders_by_user_id",
            "get_folders_by_parent_id_and_user_id",
            "get_children_folders_by_id_and_user_id",
        ),
        ("get_folder_by_id_and_user_id", "get_folder_by_parent_id_and_user_id_and_name"),
        ("insert_new_folder", "update_folder_by_id_and_user_id", "delete_folder_by_id_and_user_id"),
    )
    return {"Folders": table, "FolderModel": FolderModel}


def make_messages(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.messages`, which are about channels."""
    table = EmptyTable(
        "open_webui.models.messages.Messages",
        ("get_messages_by_channel_id", "get_messages_by_parent_id"),
        ("get_message_by_id",),
        ("insert_new_message", "update_message_by_id", "delete_message_by_id"),
    )
    return {"Messages": table, "MessageModel": MessageModel}


def make_feedbacks(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.feedbacks`."""
    table = EmptyTable(
        "open_webui.models.feedbacks.Feedbacks",
        ("get_all_feedbacks", "get_feedbacks_by_user_id", "get_feedbacks_by_type"),
        ("get_feedback_by_id", "get_feedback_by_id_and_user_id"),
        ("insert_new_feedback", "update_feedback_by_id", "delete_feedback_by_id"),
    )
    return {"Feedbacks": table, "FeedbackModel": FeedbackModel}


def make_skills(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.skills`."""
    table = EmptyTable(
        "open_webui.models.skills.Skills",
        ("get_skills", "get_skills_by_user_id"),
        ("get_skill_by_id", "get_skill_by_name"),
        ("insert_new_skill", "update_skill_by_id", "delete_skill_by_id"),
    )
    return {"Skills": table, "SkillModel": SkillModel, "SkillForm": SkillModel, "SkillMeta": SkillMeta}


def make_notes(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.notes`."""
    table = EmptyTable(
        "open_webui.models.notes.Notes",
        ("get_notes", "get_notes_by_user_id", "get_notes_by_permission"),
        ("get_note_by_id",),
        ("insert_new_note", "update_note_by_id", "delete_note_by_id"),
    )
    return {"Notes": table, "NoteModel": NoteModel}


def make_prompts(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.prompts`."""
    table = EmptyTable(
        "open_webui.models.prompts.Prompts",
        ("get_prompts", "get_prompts_by_user_id"),
        ("get_prompt_by_command", "get_prompt_by_id"),
        ("insert_new_prompt", "update_prompt_by_command", "delete_prompt_by_command"),
    )
    return {"Prompts": table, "PromptModel": PromptModel}


def make_channels(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.channels`."""
    table = EmptyTable(
        "open_webui.models.channels.Channels",
        ("get_channels", "get_channels_by_user_id"),
        ("get_channel_by_id",),
        ("insert_new_channel", "update_channel_by_id", "delete_channel_by_id"),
    )
    return {"Channels": table, "ChannelModel": ChannelModel}


def make_memory_routes(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.memories`."""
    changes = ("add_memory", "update_memory_by_id", "delete_memory_by_id", "delete_memory_by_user_id")
    return {
        "AddMemoryForm": AddMemoryForm,
        "MemoryUpdateModel": MemoryUpdateModel,
        "QueryMemoryForm": QueryMemoryForm,
        "Memories": make_memories(bridge)["Memories"],
        "get_memories": get_memories,
        "query_memory": query_memory,
        **{name: _make_async_refusal(f"{MEMORY_ROUTES}.{name}") for name in changes},
    }
