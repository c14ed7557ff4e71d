"""What answers that are looked at or changed on their way have in common."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from typing import Self

from gatewayd.catalog.interfaces import ForwardedAnswer


class PassedAnswer(ABC):
    """A `catalog.interfaces.Forwarded` over another one; subclasses say what becomes of its body."""

    def __init__(self, answer: ForwardedAnswer) -> None:
        self._answer = answer
        self._parts = self._body()

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        return self._answer.status

    @property
    def content_type(self) -> str:
        """The media type with its parameters, empty when none was named."""
        return self._answer.content_type

    def __aiter__(self) -> Self:
        """Return itself: a body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return what came since; raises what the answer raises."""
        return await anext(self._parts)

    async def aclose(self) -> None:
        """Close the provider's connection at once unless the body was read to its end."""
        await self._parts.aclose()
        await self._answer.aclose()

    @abstractmethod
    def _body(self) -> AsyncGenerator[bytes, None]:
        """Yield the body; called once, and run when the first part is wanted."""
