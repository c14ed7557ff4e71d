"""What four kinds of clients send, as the gateway's own chat requests."""

from typing import Any

from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.ollama import dialect as ollama

Body = dict[str, Any]

PICTURE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather", "parameters": SCHEMA, "strict": True},
}


def plain() -> Body:
    """The least a client sends."""
    return {"messages": [{"role": "user", "content": "Hi"}], "stream": True}


def openai_sdk() -> Body:
    """A client of the OpenAI SDK that sets everything."""
    return {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://pictures.test/a.png", "detail": "low"},
                    },
                ],
            },
        ],
        "max_tokens": 100,
        "temperature": 1.4,
        "top_p": 0.9,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "top_logprobs": 2,
        "seed": 7,
        "stop": ["a", "b", "c", "d", "e", "f"],
        "n": 1,
        "user": "ada",
        "metadata": {"run": "1"},
        "store": False,
        "service_tier": "flex",
        "verbosity": "low",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "reasoning_effort": "minimal",
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
    }


def claude_code(**changed: Any) -> Body:
    """Claude Code: adaptive thinking, effort, cache_control, betas and fields of betas."""
    cached = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    value = {
        "model": "m",
        "max_tokens": 64_000,
        "stream": True,
        "system": [{"type": "text", "text": "You are Claude Code.", **cached}],
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "max"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
        "metadata": {"user_id": "user_1"},
        "betas": ["effort-2025-11-24"],
        "tools": [
            {"name": "Bash", "description": "Run", "input_schema": SCHEMA, **cached},
            {"name": "Read", "input_schema": {"type": "object", "properties": {}}, "strict": True},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "List the files", **cached}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"city": "ls"}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a b", **cached}],
            },
        ],
        **changed,
    }
    return anthropic.parse_request({name: field for name, field in value.items() if field is not None}).body


def ollama_chat() -> Body:
    """A client of the Ollama protocol with options and think."""
    return ollama.parse_chat(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi", "images": [PICTURE]},
            ],
            "think": "max",
            "format": SCHEMA,
            "keep_alive": "5m",
            "options": {
                "temperature": 1.7,
                "top_k": 20,
                "min_p": 0.05,
                "repeat_penalty": 1.1,
                "seed": 3,
                "num_predict": 50,
                "num_ctx": 4096,
                "stop": ["x"],
                "presence_penalty": 0.1,
            },
        }
    ).body


CLIENTS = {
    "plain": plain,
    "plain without a stream": lambda: {**plain(), "stream": False},
    "openai": openai_sdk,
    "openai without effort": lambda: {**openai_sdk(), "reasoning_effort": None, "tool_choice": "required"},
    "openai at rest": lambda: {**openai_sdk(), "reasoning_effort": "none", "tool_choice": "none"},
    "claude code": claude_code,
    "claude code without thinking": lambda: claude_code(thinking={"type": "disabled"}, stream=None),
    "claude code with a budget": lambda: claude_code(
        thinking={"type": "enabled", "budget_tokens": 31_999}, output_config=None, temperature=1
    ),
    "ollama": ollama_chat,
}
"""The request of each kind of client; those of Anthropic clients are converted ones."""


def request_of(client: str, model: str) -> Body:
    """The chat request of a client for a model, without fields that are null."""
    return {name: value for name, value in {**CLIENTS[client](), "model": model}.items() if value is not None}


def is_converted(client: str) -> bool:
    """Whether a client speaks the Anthropic protocol."""
    return client.startswith("claude")
