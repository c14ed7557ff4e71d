import asyncio
import math
from array import array
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace
from gatewayd.ingest.size_classes import QueueKey, SizeClass
from gatewayd.metering.records import NO_USAGE, TokenUsage
from gatewayd.metering.service_calls import WorkOwner, paid_by
from gatewayd.upstream.services.client import ServiceOptions, service_maker
from gatewayd.upstream.services.embedders import EmbedderOptions, OllamaEmbedder, OpenAiEmbedder
from tests.fakes.metering.service_calls import ServiceMeter
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, json_reply

Embedder = OpenAiEmbedder | OllamaEmbedder
Make = Callable[..., Embedder]

FAMILIES = {"openai": (OpenAiEmbedder, "/v1"), "ollama": (OllamaEmbedder, "")}


@pytest.fixture(params=FAMILIES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make(fake: FakeUpstream, kind: str) -> AsyncIterator[Make]:
    made: list[Embedder] = []
    family, path = FAMILIES[kind]

    def build(**options: Any) -> Embedder:
        timeout = options.pop("timeout", 30.0)
        service = ServiceOptions(f"{fake.base_url}{path}", key="sk-very-secret-key", timeout=timeout)
        calls = options.pop("calls", None) or ServiceMeter()
        made.append(family(EmbedderOptions(service, "nomic", **options), calls))
        return made[-1]

    yield build
    for embedder in made:
        await embedder.close()


def answer(kind: str, *vectors: object) -> Reply:
    """Return an answer in the shape of a protocol."""
    if kind == "ollama":
        return json_reply({"embeddings": vectors})
    return json_reply(
        {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]}
    )


def rows(packed: bytes, width: int) -> list[list[float]]:
    numbers = array("f", packed)
    return [list(numbers[start : start + width]) for start in range(0, len(numbers), width)]


async def test_texts_are_sent_in_batches_and_vectors_have_length_1(
    make: Make, fake: FakeUpstream, kind: str
) -> None:
    embedder = make(batch_size=2, content_prefix="passage: ")
    found = rows(await embedder.embed(["a", "b", "c"], EmbeddingPurpose.PASSAGE), 32)
    assert len(found) == 3
    assert all(math.hypot(*row) == pytest.approx(1, abs=1e-6) for row in found)
    extra = {"truncate": True} if kind == "ollama" else {}
    assert [request.json for request in fake.requests] == [
        {"model": "nomic", "input": ["passage: a", "passage: b"], **extra},
        {"model": "nomic", "input": ["passage: c"], **extra},
    ]
    assert {request.path for request in fake.requests} == {"/api/embed" if extra else "/v1/embeddings"}
    assert fake.requests[0].headers["Authorization"] == "Bearer sk-very-secret-key"
    assert await embedder.embed([], EmbeddingPurpose.PASSAGE) == b""


async def test_a_vector_is_made_one_of_length_1(make: Make, fake: FakeUpstream, kind: str) -> None:
    fake.script(answer(kind, [3, 4.0], [-1e200, 0]))
    found = rows(await make().embed(["a", "b"], EmbeddingPurpose.QUERY), 2)
    assert found == [pytest.approx([0.6, 0.8]), [-1, 0]]


async def test_the_first_answer_tells_the_dimension(make: Make, fake: FakeUpstream, kind: str) -> None:
    embedder = make()
    assert await embedder.space() == EmbeddingSpace(f"{kind}:nomic", 32)
    assert await embedder.space() == EmbeddingSpace(f"{kind}:nomic", 32)
    assert len(fake.requests) == 1


async def test_a_dimension_that_was_seen_is_not_asked_for(make: Make, fake: FakeUpstream, kind: str) -> None:
    embedder = make(query_prefix="q: ")
    await embedder.embed(["a"], EmbeddingPurpose.QUERY)
    space = await embedder.space()
    assert space.name.startswith(f"{kind}:nomic:")
    assert fake.requests[0].json["input"] == ["q: a"]
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        ([[1.0, 2.0]], "it answered 2 texts with 1 vectors"),
        ([[1.0], [1.0], [1.0]], "it answered 2 texts with 3 vectors"),
        ([[1.0, 2.0], [1.0]], "it sent a vector of 1 numbers after one of 2"),
        ([[1.0, 2.0], [0.0, 0]], "one of its vectors has no length"),
        ([[1.0, 2.0], []], "one of its vectors has no length"),
        ([[1.0, 2.0], ["1", 2]], "one of its vectors is not a list of numbers"),
        ([[1.0, 2.0], [True, 2]], "one of its vectors is not a list of numbers"),
        ([[1.0, 2.0], [None, 2]], "one of its vectors is not a list of numbers"),
        ([[1.0, 2.0], "AAAA"], "one of its vectors is not a list of numbers"),
    ],
)
async def test_what_is_no_vector_for_each_text_is_a_failure(
    make: Make, fake: FakeUpstream, kind: str, vectors: list[object], sentence: str
) -> None:
    fake.script(answer(kind, *vectors))
    with pytest.raises(GatewayError) as failure:
        await make().embed(["a", "b"], EmbeddingPurpose.PASSAGE)
    assert failure.value.kind is ErrorKind.UPSTREAM_FAILED
    assert "'embedding model nomic'" in failure.value.message
    assert sentence in failure.value.message


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            Reply(steps=[b'{"embeddings": [[NaN, 1]], "data": [{"embedding": [NaN, 1]}]}']),
            ErrorKind.UPSTREAM_FAILED,
        ),
        (json_reply({}), ErrorKind.UPSTREAM_FAILED),
        (json_reply({"embeddings": {}, "data": {}}), ErrorKind.UPSTREAM_FAILED),
        (json_reply({"error": "model not found"}, 404), ErrorKind.UPSTREAM_FAILED),
        (json_reply({"error": {"message": "too long"}}, 400), ErrorKind.UPSTREAM_FAILED),
        (json_reply({"error": {"message": "bad key sk-very-secret-key"}}, 401), ErrorKind.UPSTREAM_FAILED),
        (json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7"), ErrorKind.RATE_LIMITED),
        (json_reply({"error": {"message": "busy"}}, 503), ErrorKind.UPSTREAM_UNREACHABLE),
        (Reply(before=CUT), ErrorKind.UPSTREAM_FAILED),
        (Reply(steps=[b'{"data": [', CUT]), ErrorKind.UPSTREAM_FAILED),
        (Reply(before=SILENCE), ErrorKind.TIMEOUT),
    ],
    ids=["nan", "empty", "objects", "404", "400", "401", "429", "503", "cut", "broken off", "silent"],
)
async def test_a_failing_service_is_named(
    make: Make, fake: FakeUpstream, reply: Reply, expected: ErrorKind
) -> None:
    fake.script(reply, reply)
    with pytest.raises(GatewayError, match="'embedding model nomic'") as failure:
        await make(timeout=0.3).embed(["a"], EmbeddingPurpose.QUERY)
    assert failure.value.kind is expected
    assert "very-secret" not in failure.value.message


async def test_a_service_that_is_not_there_is_unreachable(kind: str, unused_tcp_port: int) -> None:
    family, _ = FAMILIES[kind]
    service = ServiceOptions(f"http://127.0.0.1:{unused_tcp_port}")
    embedder = family(EmbedderOptions(service, "nomic"), ServiceMeter())
    with pytest.raises(GatewayError, match="no connection") as failure:
        await embedder.space()
    assert failure.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    await embedder.close()


async def test_a_query_does_not_wait_for_passages(make: Make, fake: FakeUpstream, kind: str) -> None:
    embedder = make(requests=1)
    fake.script(Reply(before=SILENCE))
    loop = asyncio.get_running_loop()
    passages = [loop.create_task(embedder.embed(["a"], EmbeddingPurpose.PASSAGE)) for _ in range(3)]
    await fake.silent.wait()
    fake.script(answer(kind, [1.0, 0.0]))
    assert rows(await embedder.embed(["q"], EmbeddingPurpose.QUERY), 2) == [[1, 0]]
    # One request for passages is under way, the others wait for it.
    assert len(fake.requests) == 2
    for call in passages:
        call.cancel()
    await asyncio.wait(passages)


async def test_requests_for_passages_take_turns(make: Make, fake: FakeUpstream, kind: str) -> None:
    embedder = make(requests=1, batch_size=1)
    fake.script(*(answer(kind, [1.0, 0.0]) for _ in range(4)))
    await asyncio.gather(
        embedder.embed(["l1", "l2", "l3"], EmbeddingPurpose.PASSAGE, QueueKey("a", SizeClass.LARGE)),
        embedder.embed(["s1"], EmbeddingPurpose.PASSAGE, QueueKey("a", SizeClass.SMALL)),
    )
    assert [request.json["input"] for request in fake.requests] == [["l1"], ["s1"], ["l2"], ["l3"]]


async def test_texts_that_are_not_quite_unicode_are_sent(make: Make, fake: FakeUpstream) -> None:
    await make().embed(["half a pair: \ud83d"], EmbeddingPurpose.PASSAGE)
    assert fake.requests[0].json["input"] == ["half a pair: ?"]


async def test_vectors_out_of_order_are_put_in_order(fake: FakeUpstream) -> None:
    embedder = OpenAiEmbedder(EmbedderOptions(ServiceOptions(fake.openai_url), "nomic"), ServiceMeter())
    items = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    fake.script(json_reply({"data": items}))
    assert rows(await embedder.embed(["a", "b"], EmbeddingPurpose.PASSAGE), 2) == [[1, 0], [0, 1]]
    await embedder.close()


async def test_each_request_is_metered_by_what_it_tells(make: Make, fake: FakeUpstream, kind: str) -> None:
    calls = ServiceMeter()
    embedder = make(batch_size=2, calls=calls)
    told = {"prompt_eval_count": 6} if kind == "ollama" else {"usage": {"total_tokens": 6}}
    items = [{"index": place, "embedding": [1, 0]} for place in range(2)]
    vectors = {"embeddings": [[1, 0], [0, 1]]} if kind == "ollama" else {"data": items}
    fake.script(json_reply({**vectors, **told}), answer(kind, [1, 0]), json_reply({"error": "no"}, 500))
    with paid_by(WorkOwner("ada")):
        await embedder.embed(["a" * 8, "b", "c" * 12], EmbeddingPurpose.PASSAGE)
        with pytest.raises(GatewayError):
            await embedder.embed(["d"], EmbeddingPurpose.QUERY)
    same = ("ada", "", "embedding", "nomic", "embeddings")
    assert calls.usages() == [(*same, TokenUsage(6)), (*same, TokenUsage(3)), (*same, NO_USAGE)]
    assert [call.is_estimated for call in calls.ended.calls] == [False, True, False]


async def test_the_question_for_the_dimension_is_nobody_s(make: Make, fake: FakeUpstream) -> None:
    calls = ServiceMeter()
    with paid_by(WorkOwner("ada")):
        await make(calls=calls).space()
    assert [call.user_id for call in calls.ended.calls] == [""]


def test_a_hosted_service_has_the_prices_of_its_maker() -> None:
    hosted = {"https://api.openai.com/v1": "openai", "https://api.mistral.ai/v1": "mistral"}
    for url in (*hosted, "http://127.0.0.1:8000/v1", "http://ollama.internal"):
        assert service_maker(ServiceOptions(url)) == hosted.get(url, "")
