"""What each client raises for each failure: the class that its makers meant, and words that tell enough."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pytest

from tests.clients.askers import ASKERS, Asker, opened_clients
from tests.clients.outcome import Failure
from tests.clients.scene import PREFIXES, Scene, model_of
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply, openai_chunk, sse

HI = [{"role": "user", "content": "hi"}]
LIMITED = json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7")

CLASSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "ContentTooLargeError",
    429: "RateLimitError",
}
"""The class for a status; `InternalServerError` for those that are not here, or one below it."""


@dataclass(frozen=True)
class Case:
    """A failure: who is asked, what the provider answers, what is asked, and what is raised."""

    status: int
    words: Sequence[str]
    model_id: str = "o.m"
    reply: Reply | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "an unknown model": Case(404, ["'nope'"], "nope"),
    "a bad field": Case(400, ["messages"], changes={"messages": [{"role": "nobody", "content": "hi"}]}),
    "a refusal": Case(
        400, ["'hosted'", "not that"], reply=json_reply({"error": {"message": "not that"}}, 400)
    ),
    "a limit": Case(429, ["'hosted'", "slow down"], reply=LIMITED),
    "a rejected key": Case(502, ["'hosted'", "401"], reply=json_reply({"error": {"message": "who?"}}, 401)),
    "a provider in trouble": Case(502, ["'hosted'", "500"], reply=Reply(500, content_type="")),
    "a provider that is gone": Case(503, ["'gone'"], "gone.m"),
    "a silent provider": Case(504, ["'hasty-hosted'"], "ho.m", Reply(before=SILENCE)),
    "a limit of a native provider": Case(429, ["'native'", "slow down"], "a.m", LIMITED),
    "a limit of a runtime": Case(429, ["'runtime'", "slow down"], "l.m", LIMITED),
}


def question(asker: Asker, case: Case) -> dict[str, Any]:
    limit = {"max_tokens": 64} if asker.dialect == "anthropic" else {}
    return {"model": case.model_id, "messages": HI, **limit, **case.changes}


def check(failure: Failure, status: int) -> None:
    assert failure.status == status
    if failure.name == "ResponseError":
        return
    found = getattr(anthropic, failure.name, None) or getattr(openai, failure.name)
    names = {each.__name__ for each in found.__mro__}
    assert CLASSES.get(status, "InternalServerError") in names


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CASES)
def test_failure(scene: Scene, asker: Asker, name: str, *, stream: bool) -> None:
    case = CASES[name]
    scene.provider.script(*([case.reply] if case.reply else []))
    failure = asker.ask(question(asker, case), stream=stream).failure
    scene.provider.release()
    assert failure is not None
    check(failure, case.status)
    words = case.words
    if asker.dialect != "openai" and case.model_id.startswith(PREFIXES[asker.dialect]):
        # A provider's own refusal passes as it is, and names nobody.
        words = [word for word in words if not word.startswith("'")]
    assert [word for word in words if word not in failure.message] == []
    assert scene.key not in failure.message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in ASKERS.items()])
def test_a_wrong_key(request: pytest.FixtureRequest, scene: Scene, name: str, *, stream: bool) -> None:
    node = request.getfixturevalue("node") if name.startswith("node") else None
    with opened_clients(scene.url, "sk-" + "0" * 32) as clients:
        asker = clients.asker(name, node)
        failure = asker.ask(question(asker, CASES["a limit"]), stream=stream).failure
    assert failure is not None
    check(failure, 401)


# What stands in an error beside its words --------------------------------------------------------------


def test_retry_after_is_passed_on_to_openai(scene: Scene, openai_client: openai.OpenAI) -> None:
    scene.provider.script(LIMITED)
    with pytest.raises(openai.RateLimitError) as caught:
        openai_client.chat.completions.create(model="o.m", messages=HI)
    assert caught.value.response.headers["Retry-After"] == "7"
    assert caught.value.type == "rate_limit_error"
    assert caught.value.request_id


def test_retry_after_is_passed_on_to_anthropic(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    scene.provider.script(LIMITED)
    with pytest.raises(anthropic.RateLimitError) as caught:
        anthropic_client.messages.create(model="o.m", messages=HI, max_tokens=9)
    assert caught.value.response.headers["Retry-After"] == "7"
    assert caught.value.body["error"]["type"] == "rate_limit_error"
    assert caught.value.request_id


def gemini_quota(quota_id: str) -> Reply:
    """Return a refusal of Gemini in its OpenAI form, which is a list."""
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
         "violations": [{"quotaMetric": metric, "quotaId": quota_id, "quotaValue": "20"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"},
    ]  # fmt: skip
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return json_reply([{"error": error}], 429)


def test_a_quota_of_a_day_is_not_tried_again_and_one_of_a_minute_is(
    scene: Scene, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    patient = openai_client.with_options(max_retries=2)
    day = gemini_quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
    scene.provider.script(day)
    with pytest.raises(openai.RateLimitError) as caught:
        patient.chat.completions.create(model="o.m", messages=HI)
    assert (caught.value.code, caught.value.type) == ("insufficient_quota", "insufficient_quota")
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert "Retry-After" not in caught.value.response.headers
    scene.provider.script(day)
    with pytest.raises(anthropic.APIStatusError) as refused:
        anthropic_client.with_options(max_retries=2).messages.create(model="o.m", messages=HI, max_tokens=9)
    assert (refused.value.status_code, refused.value.body["error"]["type"]) == (402, "billing_error")
    minute = gemini_quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")
    scene.provider.script(minute)
    answer = patient.chat.completions.create(model="o.m", messages=HI)
    assert answer.choices[0].message.content == "Hello from m"
    scene.provider.script(minute)
    with pytest.raises(openai.RateLimitError) as limited:
        openai_client.chat.completions.create(model="o.m", messages=HI)
    assert (limited.value.code, limited.value.response.headers["Retry-After"]) == ("rate_limit_exceeded", "1")


def test_a_client_that_retries_is_served_then(scene: Scene, openai_client: openai.OpenAI) -> None:
    scene.provider.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="0"))
    patient = openai_client.with_options(max_retries=1)
    answer = patient.chat.completions.create(model="o.m", messages=HI)
    assert answer.choices[0].message.content == "Hello from m"


def test_the_bad_field_is_named(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.chat.completions.create(model="o.m", messages=[{"role": "nobody", "content": "hi"}])
    assert caught.value.param is not None
    assert caught.value.param.startswith("messages")
    assert caught.value.type == "invalid_request_error"


def test_an_unknown_model_has_the_code_that_programs_look_for(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        openai_client.chat.completions.create(model="nope", messages=HI)
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError, match="'nope'"):
        openai_client.models.retrieve("nope")


def test_an_error_in_band_has_the_type_of_its_kind(
    scene: Scene, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    begun = b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
    broken = Reply(steps=[begun, b'data: {"error": {"message": "it broke"}}\n\n'])
    scene.provider.script(broken)
    with pytest.raises(openai.APIError, match=r"'hosted'.*it broke") as caught:
        list(openai_client.chat.completions.create(model="o.m", messages=HI, stream=True))
    assert not isinstance(caught.value, openai.APIStatusError)
    assert caught.value.type == "api_error"
    scene.provider.script(broken)
    with pytest.raises(anthropic.APIStatusError, match=r"'hosted'.*it broke") as refused:
        list(anthropic_client.messages.create(model="o.m", messages=HI, max_tokens=9, stream=True))
    assert refused.value.body["error"]["type"] == "api_error"


def test_a_source_that_has_no_such_endpoint_says_so(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        openai_client.completions.create(model="a.m", prompt="x")
    assert caught.value.code == "endpoint_not_found"
    with pytest.raises(openai.NotFoundError, match=r"'native'|'a\.m'"):
        openai_client.embeddings.create(model=model_of("anthropic"), input="x")


TOO_LONG = {
    "message": "This model's maximum context length is 8 tokens. Please reduce the length of the messages.",
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
}
NO_MONEY = {"message": "You exceeded your quota.", "type": "insufficient_quota", "code": "insufficient_quota"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_request_that_is_too_long_is_known_by_its_code(
    scene: Scene, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic, *, stream: bool
) -> None:
    scene.provider.script(json_reply({"error": TOO_LONG}, 400))
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.chat.completions.create(model="o.m", messages=HI, stream=stream)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
    # By these words frameworks raise errors of their own: LangChain by the code, dspy by the sentence.
    assert "context_length_exceeded" in str(caught.value)
    assert "maximum context length" in str(caught.value)
    scene.provider.script(json_reply({"error": TOO_LONG}, 400))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as refused:
        anthropic_client.messages.create(model="o.m", messages=HI, max_tokens=9, stream=stream)
    assert refused.value.body["error"]["type"] == "invalid_request_error"


def test_the_code_of_an_error_in_band(
    scene: Scene, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    broken = Reply(steps=[sse(openai_chunk(content="Hel")), sse({"error": TOO_LONG})])
    scene.provider.script(broken)
    with pytest.raises(openai.APIError) as caught:
        list(openai_client.chat.completions.create(model="o.m", messages=HI, stream=True))
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
    scene.provider.script(broken)
    with pytest.raises(anthropic.APIStatusError, match="prompt is too long"):
        list(anthropic_client.messages.create(model="o.m", messages=HI, max_tokens=9, stream=True))


def test_who_has_no_money_is_not_asked_again(scene: Scene, openai_client: openai.OpenAI) -> None:
    scene.provider.script(json_reply({"error": NO_MONEY}, 429))
    with pytest.raises(openai.RateLimitError) as caught:
        openai_client.with_options(max_retries=2).chat.completions.create(model="o.m", messages=HI)
    assert caught.value.code == "insufficient_quota"
    assert len([asked for asked in scene.provider.fake.requests if asked.method == "POST"]) == 1
