"""Tools of the gateway in chats that a program keeps by itself: chosen by a prompt, or called natively."""

from collections.abc import Iterator

import pytest

from tests.clients.script import Script, asked, new_chat, says
from tests.fakes.daemons.chat_site import House, opened_house
from tests.fakes.providers.upstream import (
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

PLUGINS = {
    "weather": '''"""
title: Weather
"""


class Tools:
    async def weather(self, city: str) -> str:
        """Tell the weather.
        :param city: where
        """
        return f"it rains in {city}"
''',
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened_house(tmp_path_factory.mktemp("h"), pipes=PLUGINS) as opened:
        everybody = {"access_grants": [{"principal_type": "user", "principal_id": "*", "permission": "read"}]}
        opened.ok("POST", "/api/v1/tools/id/weather/access/update", everybody, opened.admin)
        yield opened


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    house.provider.script()
    yield
    house.assert_well()


@pytest.fixture
def script(house: House) -> Iterator[Script]:
    made = Script(house)
    with made.session:
        yield made


def choose_the_weather() -> Reply:
    return json_reply(
        openai_completion('{"tool_calls": [{"name": "weather", "parameters": {"city": "Ulm"}}]}')
    )


@pytest.mark.parametrize("mode", ["legacy", "default"])
def test_tools_by_prompt_without_a_chat(script: Script, house: House, mode: str) -> None:
    house.provider.script(choose_the_weather(), json_reply(openai_completion("Take an umbrella.")))
    body = {
        "model": "o.m",
        "messages": says("Weather in Ulm?"),
        "stream": False,
        "tool_ids": ["weather"],
        "params": {"function_calling": mode},
    }
    answer = script.post("/api/chat/completions", body)
    assert answer["choices"][0]["message"]["content"] == "Take an umbrella."
    (source,) = answer["sources"]
    assert source["document"] == ["it rains in Ulm"]
    assert source["source"]["name"] == "weather/weather"
    assert "it rains in Ulm" in str(house.provider.last().json["messages"])


def test_tools_by_prompt_in_a_chat(script: Script, house: House) -> None:
    house.provider.script(choose_the_weather(), Reply(steps=openai_stream(["Take ", "an umbrella."])))
    chat_id, _, answer = new_chat(script, "Weather in Ulm?", "o.m")
    params = {"function_calling": "legacy"}
    script.post(
        "/api/chat/completions",
        asked(chat_id, answer, "o.m", says("Weather in Ulm?"), params=params, tool_ids=["weather"]),
    )
    message = script.wait_for_content(chat_id, answer)
    assert message["content"] == "Take an umbrella."
    assert [source["document"] for source in message["sources"]] == [["it rains in Ulm"]]


def test_tools_of_the_gateway_are_called_in_a_chat(script: Script, house: House) -> None:
    function = {"name": "weather", "arguments": '{"city": "Ulm"}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    calling = [
        sse(openai_chunk(tool_calls=[call])),
        sse(openai_chunk(finish_reason="tool_calls")),
        sse(b"[DONE]"),
    ]
    house.provider.script(Reply(steps=calling), Reply(steps=openai_stream(["Take an umbrella."])))
    chat_id, _, answer = new_chat(script, "Weather in Ulm?", "o.m")
    script.post(
        "/api/chat/completions",
        asked(chat_id, answer, "o.m", says("Weather in Ulm?"), tool_ids=["weather"]),
    )
    message = script.wait_for_tasks(chat_id, answer)
    assert message["content"].endswith("Take an umbrella.")
    kinds = [item["type"] for item in message["output"]]
    assert kinds == ["function_call", "function_call_output", "message"]
    told = [item for item in house.provider.last().json["messages"] if item["role"] == "tool"]
    assert [item["content"] for item in told] == ["it rains in Ulm"]
