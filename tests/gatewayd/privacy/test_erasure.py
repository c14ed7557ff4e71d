"""Tests for gatewayd.privacy.erasure; the erasure of a whole person is in assembly/upkeep/test_privacy.py."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayd.audit.trail import MAX_PENDING_ENTRIES, AuditTrail
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.privacy.erasure import MAX_PASSES, PersonErasure, pseudonym_of
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.memory_audit import MemoryAuditLog


class EndlessRows:
    """A removed account under whose id new rows keep coming."""

    def __init__(self, count: int) -> None:
        self.count, self.passes = count, 0

    def may_be_id(self, text: str) -> bool:
        return text != "no id"

    async def counts(self, user_id: str, email: str) -> dict[str, int]:
        assert (user_id, email) == ("u1", "")
        return {"chats": self.count, "files": 0}

    async def nothing(self, *_: object, **__: object) -> list[Any]:
        return []

    async def pages(self, *_: object, **__: object) -> tuple[list[Any], int]:
        return [], 0

    async def absent(self, ref: str) -> None:
        raise not_found("user", ref)

    async def passed(self, user_id: str, pseudonym: str) -> None:
        assert (user_id, pseudonym) == ("u1", pseudonym_of("u1"))
        self.passes += 1

    def erasure(self, trail: AuditTrail) -> PersonErasure:
        lists = SimpleNamespace(list=self.nothing, hide_all=self.nothing, purge=self.nothing)
        parts: Any = SimpleNamespace(
            users=SimpleNamespace(resolve=self.absent, find=self.nothing_found),
            rows=SimpleNamespace(
                may_be_id=self.may_be_id,
                counts=self.counts,
                collections=self.nothing,
                remove=self.nothing,
                rename=self.passed,
            ),
            chats=lists,
            limits=lists,
            batches=lists,
            files=SimpleNamespace(list=self.pages),
            usage=SimpleNamespace(rename=self.nothing),
        )
        return PersonErasure(parts, TaskRegistry(), trail)

    async def nothing_found(self, _: str) -> None:
        return None


async def test_rows_that_keep_coming_are_a_conflict_after_some_passes() -> None:
    rows = EndlessRows(1)
    trail = AuditTrail(MemoryAuditLog())
    erasure = rows.erasure(trail)
    assert dict((await erasure.count("u1")).counts) == {"chats": 1}
    trail.record = lambda entry: None  # type: ignore[method-assign]
    with pytest.raises(GatewayError, match="new rows keep coming") as caught:
        await erasure.erase("u1")
    assert (caught.value.kind, rows.passes) == (ErrorKind.CONFLICT, MAX_PASSES)


async def test_a_person_without_anything_does_not_exist() -> None:
    erasure = EndlessRows(0).erasure(AuditTrail(MemoryAuditLog()))
    for ref in ("u1", "no id"):
        with pytest.raises(GatewayError) as caught:
            await erasure.count(ref)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_an_erasure_that_cannot_be_recorded_does_not_begin() -> None:
    rows, trail = EndlessRows(1), AuditTrail(MemoryAuditLog())
    trail._pending += [None] * MAX_PENDING_ENTRIES  # type: ignore[list-item]
    with pytest.raises(GatewayError) as caught:
        await rows.erasure(trail).erase("u1")
    assert (caught.value.kind, rows.passes) == (ErrorKind.UNAVAILABLE, 0)


def test_a_pseudonym_is_the_same_each_time() -> None:
    assert pseudonym_of("u1") == "erased-" + hashlib.sha256(b"u1").hexdigest()[:20]
