"""In-memory model sources and records."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.records import Body, Completion, CompletionChunk


def make_model(model_id: str, source: str = "fake", **changes: object) -> Model:
    values: dict[str, object] = {
        "id": model_id,
        "name": model_id,
        "owned_by": "openai",
        "source": source,
        "upstream_id": f"up-{model_id}",
    }
    return Model(**{**values, **changes})  # type: ignore[arg-type]


def make_actor(user_id: str = "u1", role: Role = Role.ADMIN, groups: tuple[str, ...] = ()) -> Actor:
    user = User(id=user_id, email=f"{user_id}@example.org", name=user_id, role=role)
    return Actor(user=user, kind=CredentialKind.SESSION, group_ids=groups, permissions={})


@dataclass
class FakeSource:
    """Lists what it is told, answers from scripts and remembers what it was asked."""

    name: str = "fake"
    models: Sequence[Model] = ()
    failure: Exception | None = None
    hold: asyncio.Event | None = None
    script: Callable[[Body], Sequence[CompletionChunk | Exception]] | None = None
    asked: list[Body] = field(default_factory=list)
    contexts: list[CallContext] = field(default_factory=list)
    listed: int = 0
    closed_streams: int = 0

    async def list_models(self) -> Sequence[Model]:
        self.listed += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.failure is not None:
            raise self.failure
        return self.models

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        self.asked.append(body)
        self.contexts.append(context)
        if self.failure is not None:
            raise self.failure
        message = {"role": "assistant", "content": "hello"}
        return Completion(body={"id": "c1", "choices": [{"index": 0, "message": message}]})

    async def stream(self, body: Body, model: Model, context: CallContext) -> AsyncIterator[CompletionChunk]:
        self.asked.append(body)
        self.contexts.append(context)
        try:
            for item in self.script(body) if self.script else ():
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed_streams += 1

    async def close(self) -> None:
        return


@dataclass
class FakeRecords:
    """Model records in memory."""

    records: dict[str, ModelRecord] = field(default_factory=dict)

    async def list(self) -> Sequence[ModelRecord]:
        return list(self.records.values())

    async def find(self, model_id: str) -> ModelRecord | None:
        return self.records.get(model_id)

    async def put(self, record: ModelRecord) -> None:
        self.records[record.id] = record

    async def remove(self, model_id: str) -> bool:
        return self.records.pop(model_id, None) is not None
