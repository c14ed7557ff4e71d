"""What the names answer with: values that are used plainly, or awaited first.

Plugins for older releases call `Users.get_user_by_id(id)`, those for newer ones await it. Awaiting one of
these values gives the value itself. None, numbers and text are what they are.
"""

from collections.abc import Generator, Iterable, KeysView, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")
Key = TypeVar("Key")


class AwaitableValue:
    """Awaiting it gives it. It has a hash of its own, because `asyncio.gather` asks for one."""

    __hash__ = object.__hash__

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self


class AnswerRecord(AwaitableValue, BaseModel):
    """A record with attributes, as pydantic models are; further fields are kept."""

    model_config = ConfigDict(extra="allow", from_attributes=True)

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Self | None:
        """Return the record for a mapping of the host, None for none."""
        return None if value is None else cls.model_validate(dict(value))

    @classmethod
    def each(cls, values: Iterable[Mapping[str, Any]]) -> "AnswerList[Self]":
        """Return the records for mappings of the host."""
        return AnswerList(cls.model_validate(dict(value)) for value in values)


class MappedRecord(AnswerRecord):
    """A record that is read as a mapping too, as older or newer plugins do."""

    def __getitem__(self, key: str) -> Any:
        return self.model_dump()[key]

    def __contains__(self, key: object) -> bool:
        return key in self.model_dump()

    def keys(self) -> KeysView[str]:
        """Return the names of the fields."""
        return self.model_dump().keys()

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, or the default where there is none."""
        return self.model_dump().get(key, default)


class AnswerList(AwaitableValue, list[Item]):  # type: ignore[misc]
    """A list that may be awaited."""


class AnswerDict(AwaitableValue, dict[Key, Item]):  # type: ignore[misc]
    """A mapping that may be awaited."""


class AnswerText(AwaitableValue, str):
    """A text that may be awaited."""


class AnswerTuple(AwaitableValue, tuple[Any, ...]):
    """A tuple that may be awaited."""
