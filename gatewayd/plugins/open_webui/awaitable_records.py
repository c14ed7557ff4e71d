"""Return values of the `open_webui` functions, which may be used directly or awaited.

Plugins for older releases of Open WebUI call `Users.get_user_by_id(id)`, plugins for newer ones await it.
Awaiting one of these values returns the value itself. None and numbers cannot be awaited.
"""

from collections.abc import Generator, Iterable, KeysView, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")
Key = TypeVar("Key")


class AwaitableValue:
    """A value that returns itself when awaited; hashable by identity, as `asyncio.gather` requires."""

    __hash__ = object.__hash__

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self


class AnswerRecord(AwaitableValue, BaseModel):
    """A pydantic record that accepts further fields."""

    model_config = ConfigDict(extra="allow", from_attributes=True)

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Self | None:
        """Return the record for a mapping of the host; None for None."""
        return None if value is None else cls.model_validate(dict(value))

    @classmethod
    def each(cls, values: Iterable[Mapping[str, Any]]) -> "AnswerList[Self]":
        """Return the records for mappings of the host."""
        return AnswerList(cls.model_validate(dict(value)) for value in values)


class MappedRecord(AnswerRecord):
    """A record that can be read as a mapping, as some releases of Open WebUI return it."""

    def __getitem__(self, key: str) -> Any:
        return self.model_dump()[key]

    def __contains__(self, key: object) -> bool:
        return key in self.model_dump()

    def keys(self) -> KeysView[str]:
        """Return the names of the fields."""
        return self.model_dump().keys()

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field; `default` when absent."""
        return self.model_dump().get(key, default)


class AnswerList(AwaitableValue, list[Item]):  # type: ignore[misc]
    """An awaitable list."""


class AnswerDict(AwaitableValue, dict[Key, Item]):  # type: ignore[misc]
    """An awaitable dict."""


class AnswerText(AwaitableValue, str):
    """An awaitable str."""


class AnswerTuple(AwaitableValue, tuple[Any, ...]):
    """An awaitable tuple."""
