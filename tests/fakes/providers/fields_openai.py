"""What stands in a chat request of the OpenAI dialect, by its row in gatewayd-dialects(7)."""

from typing import Any, Final

from tests.fakes.providers.fields import (
    CACHED,
    HI,
    LINK,
    PNG,
    SCHEMA,
    TEXT,
    Json,
    Sample,
    deep,
    field,
    first,
    part,
    reply,
    said,
    turn,
    turns,
)

IMAGE: Final = f"data:image/png;base64,{PNG}"
PDF: Final = "data:application/pdf;base64,JVBERi0="

CALL: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING: Final = {"role": "assistant", "content": "", "tool_calls": [CALL]}
FUNCTION: Final = {"name": "f", "description": "d", "parameters": SCHEMA}
TOOL: Final = {"type": "function", "function": FUNCTION}
TOOLS: Final = {"tools": [TOOL, {"type": "function", "function": {"name": "g"}}]}
FOREIGN_TOOL: Final = {"type": "web_search_20250305", "name": "web_search"}


def _tool(**fields: Any) -> Json:
    return {"tools": [{**TOOL, **fields}]}


BASE: Final = turns(HI)

MESSAGES: Final[dict[str, Sample]] = {
    "role system": first({"role": "system", "content": "s"}),
    "role developer": first({"role": "developer", "content": "s"}),
    "role user": turn(HI, {"role": "assistant", "content": "yes"}),
    "role assistant": turn({"role": "assistant", "content": "yes"}),
    "role tool": turn({"role": "tool", "tool_call_id": "c1", "content": "r"}, CALLING),
    "role function": turn({"role": "function", "name": "f", "content": "r"}, CALLING),
    "text part": part({"type": "text", "text": "y"}),
    "image_url part, data URL": part({"type": "image_url", "image_url": {"url": IMAGE}}),
    "image_url part, http or https": part({"type": "image_url", "image_url": {"url": LINK}}),
    "file part with file_data": part({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}),
    "file part with file_id": part({"type": "file", "file": {"file_id": "file-1"}}),
    "input_audio part": part({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
    "refusal part": said({"type": "refusal", "refusal": "no"}),
    "any other part": part({"type": "video_url", "video_url": {"url": LINK}}),
    "cache_control of a part": deep(
        turns({"role": "user", "content": [{**TEXT, "cache_control": CACHED}, TEXT]}),
        turns({"role": "user", "content": [TEXT, TEXT]}),
        cache_control=CACHED,
    ),
    "tool_calls": reply(tool_calls=[CALL]),
    "function_call of a message": reply(function_call={"name": "f", "arguments": "{}"}),
    "reasoning_content": reply(reasoning_content="t"),
    "reasoning": reply(reasoning="t"),
    "thinking of a message": reply(thinking="t"),
    "reasoning_details": reply(reasoning_details=[{"type": "reasoning.text", "text": "t"}]),
    "thinking_blocks, signed": reply(
        thinking_blocks=[{"type": "thinking", "thinking": "t", "signature": "s"}]
    ),
    "thinking_blocks, unsigned": reply(thinking_blocks=[{"type": "thinking", "thinking": "t"}]),
    "server_tool_blocks": reply(server_tool_blocks=[{"type": "server_tool_use", "id": "s", "name": "n"}]),
    "name of a message": reply(name="ann"),
}

FIELDS: Final[dict[str, Sample]] = {
    "max_tokens": field(max_tokens=5),
    "max_completion_tokens": field(max_completion_tokens=5),
    "temperature": field(temperature=0.5),
    "top_p": field(top_p=0.5),
    "top_k": field(top_k=5),
    "min_p": field(min_p=0.5),
    "typical_p": field(typical_p=0.5),
    "seed": field(seed=1),
    "stop": field(stop=["x"]),
    "presence_penalty": field(presence_penalty=0.5),
    "frequency_penalty": field(frequency_penalty=0.5),
    "repeat_penalty": field(repeat_penalty=1.5),
    "repetition_penalty": field(repetition_penalty=1.5),
    "n above 1": field(n=2),
    "logprobs": field(logprobs=True),
    "top_logprobs": field({"logprobs": True}, top_logprobs=2),
    "logit_bias": field(logit_bias={"1": 1}),
    "stream": field(stream=True),
    "stream_options": field(
        {"stream": True}, stream_options={"include_usage": True, "include_obfuscation": False}
    ),
    "stream_options without stream": field(stream_options={"include_usage": True}),
    "response_format text": field(response_format={"type": "text"}),
    "response_format json_object": field(response_format={"type": "json_object"}),
    "response_format json_schema": field(
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    ),
    "reasoning_effort none": field(reasoning_effort="none"),
    "reasoning_effort, a level": field(reasoning_effort="high"),
    "reasoning_effort, another word": field(reasoning_effort="huge"),
    "thinking": field(thinking={"type": "enabled", "budget_tokens": 1024}),
    "output_config.effort": field(output_config={"effort": "low"}),
    "tools of type function": field(tools=[TOOL]),
    "strict of a tool": deep(_tool(function={**FUNCTION, "strict": True}), _tool(), strict=True),
    "cache_control of a tool": deep(_tool(cache_control=CACHED), _tool(), cache_control=CACHED),
    "tools of other types": deep({"tools": [TOOL, FOREIGN_TOOL]}, _tool(), **FOREIGN_TOOL),
    "tool_choice auto": field(TOOLS, tool_choice="auto"),
    "tool_choice none": field(TOOLS, tool_choice="none"),
    "tool_choice required": field(TOOLS, tool_choice="required"),
    "tool_choice, a function": field(TOOLS, tool_choice={"type": "function", "function": {"name": "f"}}),
    "tool_choice, anything else": field(TOOLS, tool_choice={"type": "allowed_tools"}),
    "parallel_tool_calls false": field(TOOLS, parallel_tool_calls=False),
    "functions": field(functions=[{"name": "f"}]),
    "function_call": field(function_call="auto"),
    "user": field(user="u"),
    "metadata.user_id": field(metadata={"user_id": "u"}),
    "metadata, other keys": field(metadata={"k": "v"}),
    "service_tier auto": field(service_tier="auto"),
    "service_tier default": field(service_tier="default"),
    "service_tier, other tiers": field(service_tier="flex"),
    "options": field(options={"num_ctx": 5}),
    "keep_alive": field(keep_alive="5m"),
    "format": field(format="json"),
    "think": field(think=True),
    "truncate": field(truncate=True),
    "shift": field(shift=True),
    "repeat_last_n": field(repeat_last_n=1),
    "mirostat": field(mirostat=1),
    "mirostat_eta": field(mirostat_eta=1),
    "mirostat_tau": field(mirostat_tau=1),
    "num_ctx": field(num_ctx=1),
    "num_predict": field(num_predict=1),
    "num_keep": field(num_keep=1),
    "num_batch": field(num_batch=1),
    "num_gpu": field(num_gpu=1),
    "main_gpu": field(main_gpu=1),
    "num_thread": field(num_thread=1),
    "use_mmap": field(use_mmap=True),
    "use_mlock": field(use_mlock=True),
    "any other field": field(verbosity="low", store=False, modalities=["text"], prediction={}),
    "own fields of the gateway": field(chat_id="c", session_id="s", features={}),
}
