"""What stands in a chat or generate request of the runtimes' dialect, by its row in gatewayd-dialects(7)."""

from typing import Final

from tests.fakes.providers.fields import HI, LINK, PNG, SCHEMA, Sample, deep, field, first, reply, turn, turns

CALL: Final = {"function": {"name": "f", "arguments": {}}}
CALLING: Final = {"role": "assistant", "content": "", "tool_calls": [CALL]}
FUNCTION: Final = {"name": "f", "description": "d", "parameters": SCHEMA}

BASE: Final = {**turns(HI), "stream": False}
GENERATE_BASE: Final = {"prompt": "hi", "stream": False}

MESSAGES: Final[dict[str, Sample]] = {
    "role system": first({"role": "system", "content": "s"}),
    "role user": turn(HI, {"role": "assistant", "content": "yes"}),
    "role assistant": turn({"role": "assistant", "content": "yes"}),
    "role tool": turn({"role": "tool", "content": "r", "tool_name": "f"}, CALLING),
    "any other role": first({"role": "developer", "content": "s"}),
    "images, base64": deep(turns({**HI, "images": [PNG]}), turns(HI), images=[PNG]),
    "images, http or https": deep(turns({**HI, "images": [LINK]}), turns(HI), images=[LINK]),
    "thinking of a message": reply(thinking="t"),
    "tool_calls": reply(tool_calls=[CALL]),
    "tools": field(tools=[{"type": "function", "function": FUNCTION}]),
}

GENERATE: Final[dict[str, Sample]] = {
    "prompt": field(prompt="on"),
    "system": field(system="s"),
    "images": field(images=[PNG]),
    "suffix": field(suffix="x"),
    "raw": field(raw=True),
    "template": field(template="t"),
    "context": field(context=[1]),
    "width": field(width=5),
    "height": field(height=5),
    "steps": field(steps=5),
}

FIELDS: Final[dict[str, Sample]] = {
    "options.temperature": field(options={"temperature": 1}),
    "options.top_p": field(options={"top_p": 1}),
    "options.top_k": field(options={"top_k": 1}),
    "options.min_p": field(options={"min_p": 1}),
    "options.typical_p": field(options={"typical_p": 1}),
    "options.seed": field(options={"seed": 1}),
    "options.presence_penalty": field(options={"presence_penalty": 1}),
    "options.frequency_penalty": field(options={"frequency_penalty": 1}),
    "options.repeat_penalty": field(options={"repeat_penalty": 1}),
    "options.num_predict": field(options={"num_predict": 1}),
    "options.stop": field(options={"stop": ["x"]}),
    "options, any other": field(options={"num_ctx": 5, "mirostat": 1}),
    "format json": field(format="json"),
    "format, a schema": field(format=SCHEMA),
    "format, anything else": field(format="xml"),
    "think true or false": field(think=True),
    "think low, medium, high, max": field(think="max"),
    "think, anything else": field(think="most"),
    "logprobs": field(logprobs=True),
    "top_logprobs": field({"logprobs": True}, top_logprobs=2),
    "stream": field(stream=True),
    "keep_alive": field(keep_alive="5m"),
    "truncate": field(truncate=True),
    "shift": field(shift=True),
    "any other field": field(verbosity="low"),
}
