"""The answers of stored chats over both databases: an answer begins whole, or not at all."""

import asyncio
from typing import Any

import pytest

from gatewayd.chats.run_writer import RunMessageWriter
from gatewayd.chats.service import Chats
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.engine.database import Database
from gatewayd.storage.messages import TortoiseMessages
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.records import message

QUESTION = {"id": "q", "content": "What is it?", "files": [{"id": "f"}]}
WRITES = [(TortoiseMessages, "put"), (TortoiseMessages, "change"), (TortoiseChats, "change")]


class Dying:
    """Lets `left` writes of the stores pass, and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        for store, name in WRITES:
            monkeypatch.setattr(store, name, self._through(getattr(store, name)))

    def _through(self, write: Any) -> Any:
        async def passed(*given: Any) -> Any:
            result = await write(*given)
            if self.left == 0:
                raise asyncio.CancelledError
            self.left -= 1
            return result

        return passed


def answers_of(database: Database) -> RunMessageWriter:
    return RunMessageWriter(TortoiseMessages(), TortoiseChats(), database, lambda: 70)


async def state_of() -> tuple[Any, Any]:
    return await TortoiseChats().find("c1"), list(await TortoiseMessages().list("c1"))


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "known", [None, message("a", content="before", role="assistant", items={"files": [1]})]
)
async def test_an_answer_that_is_cut_off_in_its_beginning_never_began(
    database: Database, monkeypatch: pytest.MonkeyPatch, known: Any
) -> None:
    if known is not None:
        await TortoiseMessages().put("c1", [known])
    dying, before, cuts = Dying(monkeypatch), await state_of(), 0
    while True:
        dying.left = cuts
        try:
            await answers_of(database).begin("c1", "a", None, "m", QUESTION)
        except asyncio.CancelledError:
            assert await state_of() == before
            cuts += 1
        else:
            break
    assert cuts == (3 if known is None else 4)
    chat, messages = await state_of()
    assert (chat.current_id, chat.updated_at, {each.id for each in messages}) == ("a", 70, {"q", "a"})


@pytest.mark.usefixtures("stored")
async def test_answers_begin_while_their_chat_is_changed_and_deleted(database: Database) -> None:
    owner = make_actor("u1")
    chats = Chats(TortoiseChats(), TortoiseMessages(), database, admin_access=True)
    await answers_of(database).begin("c1", "a", None, "m", QUESTION)
    tree = {"a": {"id": "a", "note": 1}, "q": {"id": "q", "note": 1}}
    await asyncio.gather(
        *(answers_of(database).begin("c1", "a", None, "m", {**QUESTION, "n": n}) for n in range(5)),
        *(chats.change(owner, "c1", {"history": {"messages": tree}}) for _ in range(5)),
    )
    question = await TortoiseMessages().find("c1", "q")
    assert question is not None
    assert question.attributes["note"] == 1
    found = await asyncio.gather(
        *(answers_of(database).begin("c1", "a", None, "m") for _ in range(4)),
        chats.remove(owner, "c1"),
        *(answers_of(database).begin("c1", "b", None, "m", QUESTION) for _ in range(4)),
        return_exceptions=True,
    )
    failures = [each for each in found if isinstance(each, BaseException)]
    assert all(isinstance(each, GatewayError) and each.kind is ErrorKind.NOT_FOUND for each in failures), (
        failures
    )
    assert await state_of() == (None, [])
