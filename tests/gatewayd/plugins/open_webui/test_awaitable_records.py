import asyncio
import inspect

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord, AnswerTuple


class Thing(AnswerRecord):
    id: str
    size: int = 0


async def test_every_answer_is_used_plainly_or_awaited() -> None:
    for answer in (Thing(id="a"), AnswerList([1]), AnswerDict(a=1), AnswerTuple((1, 2))):
        assert hasattr(answer, "__await__")
        assert inspect.isawaitable(answer)
        assert await answer is answer  # type: ignore[attr-defined]
    assert await asyncio.gather(AnswerList([1]), AnswerDict(a=1)) == [[1], {"a": 1}]


def test_they_are_what_they_are() -> None:
    assert isinstance(AnswerList(), list)
    assert AnswerList([1, 2]) == [1, 2]
    assert isinstance(AnswerDict(), dict)
    assert AnswerDict(a=1) == {"a": 1}
    content, path = AnswerTuple((b"x", "p"))
    assert (content, path) == (b"x", "p")
    assert not AnswerList()


def test_a_record_keeps_what_it_does_not_know() -> None:
    thing = Thing.of({"id": "a", "colour": "red"})
    assert thing is not None
    assert thing.model_dump() == {"id": "a", "size": 0, "colour": "red"}
    assert Thing.of(None) is None
    assert [thing.id for thing in Thing.each([{"id": "a"}, {"id": "b"}])] == ["a", "b"]
