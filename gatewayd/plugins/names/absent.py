"""What the gateway does not have: memories, folders, messages of channels, ratings.

A look at them says truly that there are none. A change raises NotProvidedError.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gatewayd.plugins.names.answers import AnswerList, AnswerRecord
from gatewayd.plugins.names.gate import Gate
from gatewayd.plugins.names.placeholders import refuse, sentence

MEMORY_ROUTES = "open_webui.routers.memories"


class EmptyTable:
    """A table without rows: names that list give an empty list, names that find one give None."""

    def __init__(self, name: str, lists: Sequence[str], finds: Sequence[str], changes: Sequence[str]) -> None:
        self._name = name
        for method in lists:
            setattr(self, method, _empty)
        for method in finds:
            setattr(self, method, _nothing)
        for method in changes:
            setattr(self, method, _refusing(f"{name}.{method}"))

    def __getattr__(self, attribute: str) -> Any:
        """Raise AttributeError that says what is missing."""
        raise AttributeError(sentence(f"{self.__dict__.get('_name', '')}.{attribute}"))


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


class AddMemoryForm(AnswerRecord):
    """A memory to add."""

    content: str


class MemoryUpdateModel(AnswerRecord):
    """A memory to change."""

    content: str | None = None


class QueryMemoryForm(AnswerRecord):
    """What memories are searched for."""

    content: str
    k: int | None = 1


def _empty(*_: Any, **__: Any) -> AnswerList[Any]:
    return AnswerList()


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _refusing(name: str) -> Callable[..., Any]:
    def change(*_: Any, **__: Any) -> Any:
        refuse(name)

    return change


def _refusing_later(name: str) -> Callable[..., Any]:
    async def change(*_: Any, **__: Any) -> Any:
        refuse(name)

    return change


async def get_memories(*_: Any, **__: Any) -> AnswerList[Any]:
    """Return the memories of a user: none."""
    return AnswerList()


async def query_memory(*_: Any, **__: Any) -> None:
    """Return the memories that fit a query, as a search result: None, there are none."""
    return


def make_memories(_gate: Gate) -> dict[str, Any]:
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


def make_folders(_gate: Gate) -> dict[str, Any]:
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


def make_messages(_gate: Gate) -> dict[str, Any]:
    """Return the names of `open_webui.models.messages`, which are about channels."""
    table = EmptyTable(
        "open_webui.models.messages.Messages",
        ("get_messages_by_channel_id", "get_messages_by_parent_id"),
        ("get_message_by_id",),
        ("insert_new_message", "update_message_by_id", "delete_message_by_id"),
    )
    return {"Messages": table, "MessageModel": MessageModel}


def make_feedbacks(_gate: Gate) -> dict[str, Any]:
    """Return the names of `open_webui.models.feedbacks`."""
    table = EmptyTable(
        "open_webui.models.feedbacks.Feedbacks",
        ("get_all_feedbacks", "get_feedbacks_by_user_id", "get_feedbacks_by_type"),
        ("get_feedback_by_id", "get_feedback_by_id_and_user_id"),
        ("insert_new_feedback", "update_feedback_by_id", "delete_feedback_by_id"),
    )
    return {"Feedbacks": table, "FeedbackModel": FeedbackModel}


def make_memory_routes(gate: Gate) -> dict[str, Any]:
    """Return the names of `open_webui.routers.memories`."""
    changes = ("add_memory", "update_memory_by_id", "delete_memory_by_id", "delete_memory_by_user_id")
    return {
        "AddMemoryForm": AddMemoryForm,
        "MemoryUpdateModel": MemoryUpdateModel,
        "QueryMemoryForm": QueryMemoryForm,
        "Memories": make_memories(gate)["Memories"],
        "get_memories": get_memories,
        "query_memory": query_memory,
        **{name: _refusing_later(f"{MEMORY_ROUTES}.{name}") for name in changes},
    }
