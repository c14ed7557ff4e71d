"""Base class of forwarded replies that are inspected or changed on the way to the caller."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from typing import Self

from gatewayd.catalog.interfaces import ForwardedAnswer


class PassedAnswer(ABC):
    """A `catalog.interfaces.ForwardedAnswer` that wraps another one; subclasses process its body."""

    def __init__(self, answer: ForwardedAnswer) -> None:
        self._answer = answer
        self._parts = self._body()

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        return self._answer.status

    @property
    def content_type(self) -> str:
        """Media type with its parameters; empty if the provider sent none."""
        return self._answer.content_type

    def __aiter__(self) -> Self:
        """Return itself; the body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes; raise the errors of the wrapped reply."""
        return await anext(self._parts)

    async def aclose(self) -> None:
        """Close the provider's connection immediately unless the body was read to its end."""
        await self._parts.aclose()
        await self._answer.aclose()

    @abstractmethod
    def _body(self) -> AsyncGenerator[bytes, None]:
        """Yield the body; called once, runs when the first bytes are read."""
