from typing import Any

from gatewayd.plugins.open_webui.modules import payload as p


def body() -> dict[str, Any]:
    return {"model": "small", "messages": [{"role": "user", "content": "hello"}]}


def test_a_system_prompt_with_its_variables() -> None:
    metadata = {"variables": {"{{CITY}}": "Paris", "{{USER_NAME}}": "given"}}
    user = {"name": "Ada", "email": "ada@example.org"}
    made = p.apply_system_prompt_to_body("{{USER_NAME}} {{USER_EMAIL}} {{CITY}}", body(), metadata, user)
    assert made["messages"][0] == {"role": "system", "content": "given ada@example.org Paris"}
    p.apply_system_prompt_to_body("First.", made)
    assert made["messages"][0]["content"] == "First.\ngiven ada@example.org Paris"
    p.apply_system_prompt_to_body("Only.", made, replace=True)
    assert made["messages"][0]["content"] == "Only."
    assert p.apply_system_prompt_to_body("", body()) == body()
    assert p.apply_system_prompt_to_body("x", {})["messages"] == [{"role": "system", "content": "x"}]


def test_parameters() -> None:
    params = {
        "temperature": "0.5",
        "max_tokens": "10",
        "stop": "END",
        "top_p": None,
        "unknown": 1,
        "custom_params": {"own": True},
    }
    made = p.apply_model_params_to_body_openai(params, body())
    assert made == {**body(), "temperature": 0.5, "max_tokens": 10, "stop": ["END"], "own": True}
    assert p.apply_model_params_to_body_openai(None, body()) == body()
    assert p.apply_model_params_to_body({"n": "3"}, {}, {"n": int}) == {"n": 3}
    assert p.apply_model_params_to_body_openai({"stop": ["a"]}, {})["stop"] == ["a"]


def test_what_is_not_for_models() -> None:
    assert p.remove_open_webui_params({"system": "x", "function_calling": "native", "seed": 1}) == {"seed": 1}
