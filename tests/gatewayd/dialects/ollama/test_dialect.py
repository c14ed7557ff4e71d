import base64
import hashlib

import httpx
import ollama
import orjson
import pytest

from gatewayd.catalog.records import Model
from gatewayd.dialects.ollama.dialect import (
    ReplyTiming,
    load_reason,
    parse_chat,
    parse_embed,
    parse_embeddings,
    parse_generate,
    render_chat,
    render_counters,
    render_embed,
    render_embeddings,
    render_error,
    render_generate,
    render_load,
    render_show,
    render_tags,
    timestamp,
)
from gatewayd.errors import ErrorKind, GatewayError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()
TIMING = ReplyTiming(created=1_700_000_000, total_ns=90, first_ns=30)
CREATED_AT = "2023-11-14T22:13:20Z"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
COUNTERS = {
    "total_duration": 90,
    "load_duration": 0,
    "prompt_eval_count": 3,
    "prompt_eval_duration": 30,
    "eval_count": 2,
    "eval_duration": 60,
}
USER = {"role": "user", "content": "hi"}


def completion(message, reason="stop", **more):
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {"id": "c", "model": "other", "choices": [choice], "usage": USAGE, **more}


def chat(message, reason="stop", **more):
    reply = render_chat(completion(message, reason, **more), "m", TIMING)
    ollama.ChatResponse.model_validate_json(orjson.dumps(reply))
    return reply


def test_chat_request():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    request = parse_chat(
        {
            "model": "m",
            "messages": [USER],
            "tools": [tool],
            "options": {"num_predict": 9, "num_ctx": 8},
            "keep_alive": "5m",
            "think": False,
            "truncate": True,
            "unknown": 1,
        }
    )
    assert (request.model, request.stream, request.files) == ("m", True, [])
    assert request.body == {
        "model": "m",
        "messages": [USER],
        "stream": True,
        "max_tokens": 9,
        "reasoning_effort": "none",
        "stream_options": {"include_usage": True},
        "tools": [tool],
    }
    assert len(request.warnings) == 1
    assert load_reason(request) is None


def test_chat_request_without_a_stream():
    request = parse_chat({"model": "m", "messages": [USER], "stream": False, "tools": []})
    assert request.body == {"model": "m", "messages": [USER], "stream": False}
    assert not request.stream


def test_generate_request():
    request = parse_generate(
        {
            "model": "m",
            "prompt": "look",
            "system": "be brief",
            "images": [PNG],
            "format": "json",
            "stream": False,
            "raw": False,
            "suffix": "",
            "context": [],
            "template": "",
        }
    )
    url = f"data:image/png;base64,{PNG}"
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": parts}],
        "stream": False,
        "response_format": {"type": "json_object"},
    }
    assert request.warnings == []


def test_generate_names_what_it_cannot_use():
    request = parse_generate({"model": "m", "prompt": "a", "template": "{{ .Prompt }}", "context": [1, 2]})
    assert [sentence.partition(":")[0] for sentence in request.warnings] == [
        "cannot use template",
        "cannot use context",
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "load"),
        ({"keep_alive": "5m"}, "load"),
        ({"keep_alive": -1}, "load"),
        ({"keep_alive": False}, "load"),
        ({"keep_alive": 0}, "unload"),
        ({"keep_alive": "0"}, "unload"),
        ({"keep_alive": "0s"}, "unload"),
    ],
)
def test_requests_that_load(value, reason):
    assert load_reason(parse_chat({"model": "m", **value})) == reason
    assert load_reason(parse_chat({"model": "m", "messages": [], **value})) == reason
    assert load_reason(parse_generate({"model": "m", "prompt": "", "system": "x", **value})) == reason
    assert load_reason(parse_generate({"model": "m", "prompt": "hi", **value})) is None


def test_replies_to_requests_that_load():
    reply = {"model": "m", "created_at": CREATED_AT, "done": True, "done_reason": "load"}
    assert render_load("m", "load", TIMING.created, generate=True) == {**reply, "response": ""}
    message = {"role": "assistant", "content": ""}
    assert render_load("m", "load", TIMING.created, generate=False) == {**reply, "message": message}


@pytest.mark.parametrize(
    ("parse", "value", "param"),
    [
        (parse_chat, {"messages": [USER]}, "model"),
        (parse_chat, {"model": "", "messages": [USER]}, "model"),
        (parse_chat, {"model": 3, "messages": [USER]}, "model"),
        (parse_chat, {"model": "m", "messages": {"a": 1}}, "messages"),
        (parse_chat, {"model": "m", "messages": [USER, 3]}, "messages[1]"),
        (parse_chat, {"model": "m", "messages": [USER], "stream": "no"}, "stream"),
        (parse_chat, {"model": "m", "messages": [USER], "tools": [3]}, "tools[0]"),
        (parse_generate, {"prompt": "a"}, "model"),
        (parse_generate, {"model": "m", "prompt": ["a"]}, "prompt"),
        (parse_generate, {"model": "m", "prompt": "a", "system": 3}, "system"),
        (parse_generate, {"model": "m", "prompt": "a", "suffix": "b"}, "suffix"),
        (parse_generate, {"model": "m", "prompt": "a", "raw": True}, "raw"),
        (parse_generate, {"model": "m", "prompt": "a", "images": ["%"]}, "images[0]"),
        (parse_embed, {"input": "a"}, "model"),
        (parse_embed, {"model": "m", "input": 3}, "input"),
        (parse_embed, {"model": "m", "input": [[1, 2]]}, "input"),
        (parse_embed, {"model": "m", "input": ["a"] * 2049}, "input"),
        (parse_embed, {"model": "m", "input": "a", "dimensions": "x"}, "dimensions"),
        (parse_embed, {"model": "m", "input": "a", "dimensions": -1}, "dimensions"),
        (parse_embeddings, {"prompt": "a"}, "model"),
        (parse_embeddings, {"model": "m", "prompt": ["a"]}, "prompt"),
    ],
)
def test_bad_requests_name_the_field(parse, value, param):
    with pytest.raises(GatewayError) as caught:
        parse(value)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ({"input": "a"}, {"input": ["a"]}),
        ({"input": ["a", ""]}, {"input": ["a", ""]}),
        ({"input": ""}, {"input": []}),
        ({"input": []}, {"input": []}),
        ({}, {"input": []}),
        ({"input": "a", "dimensions": 8, "truncate": False}, {"input": ["a"], "dimensions": 8}),
        ({"input": "a", "dimensions": 0}, {"input": ["a"]}),
    ],
)
def test_embed_request(value, more):
    assert parse_embed({"model": "m", **value}) == {"model": "m", "encoding_format": "float", **more}


def test_embeddings_request():
    asked = {"model": "m", "encoding_format": "float"}
    assert parse_embeddings({"model": "m", "prompt": "a"}) == {**asked, "input": ["a"]}
    assert parse_embeddings({"model": "m"}) == {**asked, "input": []}


def test_chat_reply():
    assert chat({"role": "assistant", "content": "hello"}) == {
        "model": "m",
        "created_at": CREATED_AT,
        "message": {"role": "assistant", "content": "hello"},
        "done": True,
        "done_reason": "stop",
        **COUNTERS,
    }


@pytest.mark.parametrize(
    ("reason", "done_reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "stop"),
        ("content_filter", "stop"),
        (None, "stop"),
    ],
)
def test_done_reasons(reason, done_reason):
    assert chat({"content": "a"}, reason)["done_reason"] == done_reason


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_thinking(name):
    assert chat({"content": None, name: "hm"})["message"] == {
        "role": "assistant",
        "content": "",
        "thinking": "hm",
    }


def test_refusals_are_text():
    assert chat({"content": None, "refusal": "no"})["message"]["content"] == "no"


def test_tool_calls():
    made = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}},
        {"type": "function", "function": {"name": "g", "arguments": ""}},
        {"id": "c3", "function": {"name": "h", "arguments": {"b": 2}}},
        {"id": "c4", "function": {"name": "i", "arguments": "null"}},
    ]
    calls = chat({"content": None, "tool_calls": made}, "tool_calls")["message"]["tool_calls"]
    assert calls.pop(1).pop("id").startswith("call_")
    assert calls == [
        {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"a": [1]}}},
        {"id": "c3", "function": {"index": 2, "name": "h", "arguments": {"b": 2}}},
        {"id": "c4", "function": {"index": 3, "name": "i", "arguments": {}}},
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        *('{"a": ', "[1]", '"x"', "x", 3, '{"a":' + "[" * 260 + "]" * 260 + "}"),
        '{"a":[' + "[]," * 150_000 + "[]]}",
    ],
)
def test_arguments_that_are_no_object_fail(arguments):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    with pytest.raises(GatewayError) as caught:
        chat({"content": None, "tool_calls": [call]})
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert "'f'" in caught.value.message


@pytest.mark.parametrize("choices", [None, [], [None], {"a": 1}])
def test_a_completion_without_choices_fails(choices):
    with pytest.raises(GatewayError) as caught:
        render_chat({"choices": choices}, "m", TIMING)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert "'m'" in caught.value.message


def test_logprobs():
    token = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "b", "logprob": -1.0}]}
    answer = completion({"content": "a"})
    answer["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    reply = render_chat(answer, "m", TIMING)
    parsed = ollama.ChatResponse.model_validate_json(orjson.dumps(reply))
    assert reply["logprobs"] == [token]
    assert parsed.logprobs[0].top_logprobs[0].token == "b"


def test_counters_of_the_runtime_come_first():
    usage = {**USAGE, "total_duration": 7, "eval_count": 4, "eval_duration": 6, "load_duration": 1}
    assert render_counters({"usage": usage}, TIMING) == {
        **COUNTERS,
        "total_duration": 7,
        "eval_count": 4,
        "eval_duration": 6,
        "load_duration": 1,
    }


def test_counters_of_an_engine():
    timings = {"prompt_n": 5, "prompt_ms": 1.5, "predicted_n": 6, "predicted_ms": 2}
    assert render_counters({"timings": timings}, TIMING) == {
        **COUNTERS,
        "prompt_eval_count": 5,
        "prompt_eval_duration": 1_500_000,
        "eval_count": 6,
        "eval_duration": 2_000_000,
    }


@pytest.mark.parametrize(
    "odd", [None, {}, [], {"usage": []}, {"usage": {"prompt_tokens": "x"}, "timings": 3}]
)
def test_tokens_that_nobody_counted(odd):
    counted = render_counters(odd or {}, TIMING)
    assert counted == {**COUNTERS, "prompt_eval_count": 0, "eval_count": 0}


def test_generate_reply():
    reply = render_generate(completion({"content": "a", "reasoning_content": "hm"}, "length"), "m", TIMING)
    ollama.GenerateResponse.model_validate_json(orjson.dumps(reply))
    assert reply == {
        "model": "m",
        "created_at": CREATED_AT,
        "response": "a",
        "thinking": "hm",
        "done": True,
        "done_reason": "length",
        **COUNTERS,
    }


def test_embed_reply():
    data = [{"index": 1, "embedding": [3.0, 4.0]}, {"index": 0, "embedding": [1.0, 2.0]}]
    reply = render_embed({"data": data, "usage": {"prompt_tokens": 6}}, "m", TIMING)
    ollama.EmbedResponse.model_validate_json(orjson.dumps(reply))
    assert reply == {
        "model": "m",
        "embeddings": [[1.0, 2.0], [3.0, 4.0]],
        "total_duration": 90,
        "load_duration": 0,
        "prompt_eval_count": 6,
    }
    assert render_embed({"data": []}, "m", TIMING)["embeddings"] == []


def test_embeddings_reply():
    assert render_embeddings({"data": [{"index": 0, "embedding": [1.0]}]}) == {"embedding": [1.0]}
    assert render_embeddings({"data": []}) == {"embedding": []}


def test_error_line():
    assert render_error('a "b"\n') == b'{"error":"a \\"b\\"\\n"}\n'


def test_tags():
    own = Model("gpt", "GPT", "openai", "hosted", "gpt", created=TIMING.created)
    tag = {"name": "q:1b", "model": "q:1b", "size": 7, "digest": "d", "modified_at": "2024-01-01T00:00:00Z"}
    runtime = Model("r.q:1b", "q:1b", "ollama", "runtime", "q:1b", detail={"ollama": {**tag, "urls": [0]}})
    reply = render_tags([own, runtime])
    parsed = ollama.ListResponse.model_validate_json(orjson.dumps(reply))
    assert [model.model for model in parsed.models] == ["gpt", "r.q:1b"]
    assert parsed.models[0].details.family == "openai"
    assert reply["models"][0]["digest"] == hashlib.sha256(b"gpt").hexdigest()
    assert reply["models"][0]["modified_at"] == CREATED_AT
    kept = {"size": 7, "digest": "d", "modified_at": "2024-01-01T00:00:00Z", "urls": [0]}
    assert reply["models"][1] == {
        **kept,
        "name": "r.q:1b",
        "model": "r.q:1b",
        "details": reply["models"][1]["details"],
    }


def test_tag_of_a_model_on_top_of_another_one_does_not_tell_which():
    base = {"size": 7, "digest": "d", "details": {"parent_model": "q:1b"}, "urls": [0]}
    model = Model("mine", "Mine", "ollama", "runtime", "q:1b", detail={"ollama": base, "preset": True})
    (tag,) = render_tags([model])["models"]
    assert (tag["model"], tag["size"], tag["digest"]) == ("mine", 0, hashlib.sha256(b"mine").hexdigest())
    assert tag["details"]["parent_model"] == ""


def test_show():
    model = Model("gpt", "GPT", "openai", "hosted", "gpt")
    parsed = ollama.ShowResponse.model_validate_json(orjson.dumps(render_show(model)))
    assert parsed.capabilities == ["completion", "tools"]
    assert parsed.modelinfo["general.architecture"] == "openai"
    assert render_show(model, ["embedding"])["capabilities"] == ["embedding"]


def test_timestamps():
    assert timestamp(0) == "1970-01-01T00:00:00Z"
    assert timestamp(253_402_300_799) == "9999-12-31T23:59:59Z"


def weather(city: str) -> str:
    """Tell the weather.

    Args:
      city: Where.
    """
    return city


def test_requests_of_the_official_client():
    """Whatever the client makes of its arguments is understood, and it understands the answer."""
    seen = []

    def serve(request):
        parse = parse_generate if request.url.path.endswith("generate") else parse_chat
        render = render_generate if parse is parse_generate else render_chat
        seen.append(parse(orjson.loads(request.content)))
        calls = [{"id": "c", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]
        answer = completion({"content": "a", "tool_calls": calls}, "tool_calls")
        return httpx.Response(200, content=orjson.dumps(render(answer, "m", TIMING)))

    image = b"\x89PNG\r\n\x1a\n and more"
    with ollama.Client("http://gateway.invalid/ollama", transport=httpx.MockTransport(serve)) as client:
        first = client.chat(
            "m",
            [ollama.Message(role="user", content="hi", images=[ollama.Image(value=image)])],
            tools=[weather],
            options=ollama.Options(temperature=0, num_predict=-1, stop=["x"]),
            think="low",
            format={"type": "object"},
        )
        results = [first.message, {"role": "tool", "tool_name": "weather", "content": "sun"}]
        client.chat("m", [{"role": "user", "content": "hi"}, *results])
        text = client.generate("m", "look", system="s", images=[PNG], options={"seed": 3}, keep_alive=5)
    assert first.message.tool_calls[0].function.arguments == {"city": "Rome"}
    assert (text.response, text.done_reason, text.eval_count) == ("a", "stop", 2)
    asked, again, generated = seen
    assert asked.body["tools"][0]["function"]["parameters"]["required"] == ["city"]
    assert asked.body["messages"][0]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    assert (asked.body["temperature"], asked.body["stop"], asked.body["reasoning_effort"]) == (
        0,
        ["x"],
        "low",
    )
    call, result = again.body["messages"][1:]
    assert result == {"role": "tool", "content": "sun", "tool_call_id": call["tool_calls"][0]["id"]}
    assert [turn["role"] for turn in generated.body["messages"]] == ["system", "user"]
    assert [request.warnings for request in seen] == [[], [], []]


def test_requests_refer_to_documents():
    files = [{"type": "file", "id": "f1"}]
    for parse, asked in ((parse_chat, {"messages": [USER]}), (parse_generate, {"prompt": "hi"})):
        request = parse({"model": "m", **asked, "files": files})
        assert request.files == files
        assert "files" not in request.body
        with pytest.raises(GatewayError) as caught:
            parse({"model": "m", **asked, "files": [{"type": "file"}]})
        assert caught.value.param == "files[0]"


@pytest.mark.parametrize("name", ["raw", "suffix"])
def test_text_that_is_no_chat_is_refused_with_the_reason(name: str) -> None:
    asked = {"model": "m", "prompt": "p", name: "x"}
    for is_local, words in ((True, "filters or the model's record"), (False, "not text completion")):
        with pytest.raises(GatewayError, match=words) as caught:
            parse_generate(asked, is_local=is_local)
        assert caught.value.param == name


def test_what_only_runtimes_know_stays_for_a_runtime() -> None:
    asked = {
        "model": "m",
        "prompt": "p",
        "stream": False,
        "keep_alive": "5m",
        "think": "low",
        "options": {"num_ctx": 8, "num_predict": -1, "temperature": 0},
    }
    chat = parse_generate(asked, is_local=True)
    assert chat.warnings == []
    assert {name: chat.body[name] for name in ("keep_alive", "think", "options", "temperature")} == {
        "keep_alive": "5m",
        "think": "low",
        "options": {"num_ctx": 8, "num_predict": -1},
        "temperature": 0,
    }
    embed = {"model": "m", "input": "a", "truncate": False, "options": {"num_ctx": 8}}
    assert parse_embed(embed, is_local=True)["options"] == {"num_ctx": 8}
    assert "truncate" not in parse_embed(embed)
    assert parse_embeddings({"model": "m", "prompt": "a", "keep_alive": 0}, is_local=True)["keep_alive"] == 0
