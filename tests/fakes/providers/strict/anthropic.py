"""Anthropic's messages: what the API refuses by model family, beta and history, with its error texts.

    async with StrictAnthropic() as provider:
        provider.script([thought("hm"), {"type": "text", "text": "a"}])
        ...                      # a source with base_url=provider.base_url asks

A scripted answer is a list of blocks, or a `StrictRefusalError`. Signatures are HMACs of the thoughts, so
that a changed thought, or one of another maker, is refused. Errors are written with spaces, as no JSON
library of the gateway does, so that a test sees whether they pass unchanged.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from aiohttp import web

from tests.fakes.providers.strict.anthropic_answers import answer
from tests.fakes.providers.strict.anthropic_betas import BETAS, FIELD_BETAS, TOOL_FIELD_BETAS, check_parts
from tests.fakes.providers.strict.base import Body, StrictProvider, StrictRefusalError

SECRET: Final = b"the key that signs thoughts"

FIELDS: Final = frozenset(
    {
        *("model", "messages", "max_tokens", "system", "stream", "stop_sequences", "temperature", "top_p"),
        *("top_k", "thinking", "metadata", "tools", "tool_choice", "service_tier", "output_config"),
        *("cache_control", "inference_geo", "container"),
    }
)
TOOL_FIELDS: Final = frozenset(
    {
        *("type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading"),
        *("allowed_callers", "input_examples", "eager_input_streaming"),
    }
)
BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"text", "citations"}),
    "image": frozenset({"source"}),
    "document": frozenset({"source", "title", "context", "citations"}),
    "search_result": frozenset({"source", "title", "content", "citations"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "tool_use": frozenset({"id", "name", "input", "caller"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error"}),
}
"""Fields of each block beside `type` and `cache_control`."""

MAX_CACHED: Final = 4


class ModelFamily(NamedTuple):
    """What the models of a family take; `efforts` is empty if they refuse the field."""

    prefix: str
    budgets: bool = True
    adaptive: bool = False
    efforts: tuple[str, ...] = ()
    sampling: bool = True
    both_sampling: bool = False
    prefill: bool = True
    forced_tools: bool = True
    output: int = 64_000


LOW_HIGH = ("low", "medium", "high")
NEW = {"budgets": False, "adaptive": True, "sampling": False, "prefill": False, "output": 128_000}
FAMILIES: Final = (
    ModelFamily("claude-3", both_sampling=True, output=8_192),
    ModelFamily("claude-sonnet-4-5"),
    ModelFamily("claude-haiku-4-5"),
    ModelFamily("claude-opus-4-5", efforts=LOW_HIGH),
    ModelFamily("claude-opus-4-6", adaptive=True, efforts=(*LOW_HIGH, "max"), prefill=False, output=128_000),
    ModelFamily("claude-sonnet-4-6", adaptive=True, efforts=(*LOW_HIGH, "max"), output=128_000),
    ModelFamily("claude-opus-4-1", output=32_000),
    ModelFamily("claude-opus-4-7", efforts=(*LOW_HIGH, "xhigh", "max"), **NEW),
    ModelFamily("claude-opus-4-8", efforts=(*LOW_HIGH, "xhigh", "max"), **NEW),
    ModelFamily("claude-opus-4", both_sampling=True, output=32_000),
    ModelFamily("claude-sonnet-4", both_sampling=True),
    ModelFamily("claude-fable-5", efforts=(*LOW_HIGH, "xhigh", "max"), forced_tools=False, **NEW),
    ModelFamily("claude-mythos", efforts=(*LOW_HIGH, "xhigh", "max"), forced_tools=False, **NEW),
    ModelFamily("claude-", efforts=(*LOW_HIGH, "xhigh", "max"), **NEW),
)


def refusal(
    message: str, status: int = 400, kind: str = "invalid_request_error", **headers: str
) -> Exception:
    """Return a refusal in the shape of the API."""
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_strict"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return StrictRefusalError(status, json.dumps(error), named)


def sign(thought: str) -> str:
    """Return the signature of a thought."""
    return hmac.new(SECRET, thought.encode(), hashlib.sha256).hexdigest()


def thought(text: str) -> Body:
    """Return a signed thinking block."""
    return {"type": "thinking", "thinking": text, "signature": sign(text)}


class StrictAnthropic(StrictProvider):
    """The provider. A beta without its part is refused with `refuses_lone_betas`, and a prompt of over
    `context` tokens of four characters."""

    def __init__(
        self,
        *,
        models: Sequence[str] = ("claude-opus-4-6",),
        key: str = "hunter2",
        context: int = 200_000,
        refuses_lone_betas: bool = False,
    ) -> None:
        listed: list[str | Body] = [{"type": "model", "id": name, "display_name": name} for name in models]
        super().__init__(models=listed, prefix="")
        self._key = key
        self._context = context
        self._refuses_lone_betas = refuses_lone_betas
        self._answers: list[Any] = []

    def script(self, *messages: Any) -> None:
        """Answer the next accepted requests with these blocks or refusals."""
        self._answers += messages

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        raw = await request.read()
        body = orjson.loads(raw or b"{}")
        try:
            self._check_head(request)
            if request.method == "GET":
                self._note(request, body, None)
                return web.json_response({"data": self._models, "has_more": False, "last_id": None})
            self._check(body, betas_of(request))
            scripted = self._answers.pop(0) if self._answers else [{"type": "text", "text": "Hello."}]
            if isinstance(scripted, Exception):
                raise scripted
        except StrictRefusalError as refused:
            self._note(request, body, refused)
            headers = {"request-id": "req_strict", **refused.headers}
            return web.Response(
                text=refused.body, status=refused.status, headers=headers, content_type="application/json"
            )
        self._note(request, body, None)
        return await answer(request, body, scripted)

    def _check_head(self, request: web.Request) -> None:
        if request.headers.get("x-api-key") != self._key:
            raise refusal(
                f"invalid x-api-key {request.headers.get('x-api-key')}", 401, "authentication_error"
            )
        if "anthropic-version" not in request.headers:
            raise refusal("anthropic-version: header is required")
        if request.path not in {"/v1/models", "/v1/messages"}:
            raise refusal("Not Found", 404, "not_found_error")
        for beta in betas_of(request):
            if beta not in BETAS:
                raise refusal(
                    f"Unexpected value(s) `{beta}` for the `anthropic-beta` header. Please consult our"
                    " documentation at docs.anthropic.com or try again without the header."
                )

    def _check(self, body: Body, betas: Sequence[str]) -> None:
        known = [item["id"] for item in self._models]
        if body.get("model") not in known:
            raise refusal(f"model: {body.get('model')}", 404, "not_found_error")
        family = next(item for item in FAMILIES if str(body["model"]).startswith(item.prefix))
        check_fields(body, betas)
        if self._refuses_lone_betas:
            lone = next((beta for beta in betas if not check_parts(beta, body)), None)
            if lone is not None:
                raise refusal(f"anthropic-beta: {lone} needs its field in the body")
        check_limits(body, family)
        check_thinking(body, family)
        check_messages(body, family, betas)
        check_cached(body)
        tokens = len(orjson.dumps([body.get("system"), body["messages"]])) // 4
        if tokens > self._context:
            raise refusal(f"prompt is too long: {tokens} tokens > {self._context} maximum")


def betas_of(request: web.Request) -> list[str]:
    """Return the betas of a request."""
    return [name.strip() for name in request.headers.get("anthropic-beta", "").split(",") if name.strip()]


def check_fields(body: Body, betas: Sequence[str]) -> None:
    """Refuse unknown fields, and those whose beta is missing."""
    for name in body:
        if name in FIELDS:
            continue
        if not any(beta.startswith(FIELD_BETAS.get(name, ("\0",))) for beta in betas):
            raise refusal(f"{name}: Extra inputs are not permitted")
    for index, tool in enumerate(body.get("tools") or ()):
        kind = tool.get("type", "custom")
        for name in tool if kind == "custom" else ():
            needed = TOOL_FIELD_BETAS.get(name)
            if name not in TOOL_FIELDS or (needed and not any(beta.startswith(needed) for beta in betas)):
                raise refusal(f"tools.{index}.custom.{name}: Extra inputs are not permitted")
    for name in ("max_tokens", "messages"):
        if name not in body:
            raise refusal(f"{name}: Field required")


def check_limits(body: Body, family: ModelFamily) -> None:
    """Refuse sampling and lengths that the model does not take."""
    limit = body["max_tokens"]
    if type(limit) is not int or limit < 0:
        raise refusal("max_tokens: Input should be greater than or equal to 0")
    if limit > family.output:
        raise refusal(
            f"max_tokens: {limit} > {family.output}, which is the maximum allowed number of output tokens for"
            f" {body['model']}"
        )
    for name in ("temperature", "top_p", "top_k"):
        if name in body and not family.sampling:
            raise refusal(f"`{name}` is deprecated for this model.")
    if not 0 <= body.get("temperature", 1) <= 1:
        raise refusal("temperature: range: 0..1")
    if {"temperature", "top_p"} <= body.keys() and not family.both_sampling:
        raise refusal(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )


def check_thinking(body: Body, family: ModelFamily) -> None:
    """Refuse kinds of thinking, budgets, efforts and forced tools that the model does not take."""
    thinking = body.get("thinking") or {"type": "disabled"}
    kind = thinking.get("type")
    effort = (body.get("output_config") or {}).get("effort")
    if effort is not None and effort not in family.efforts:
        raise refusal(
            f"output_config.effort: Input should be one of {', '.join(family.efforts)}"
            if family.efforts
            else "This model does not support the effort parameter."
        )
    if kind not in {"enabled", "disabled", "adaptive"}:
        raise refusal(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )
    if kind == "adaptive" and not family.adaptive:
        raise refusal("adaptive thinking is not supported on this model")
    if kind == "enabled":
        if not family.budgets:
            raise refusal(
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
            )
        budget = thinking.get("budget_tokens", 0)
        if budget < 1024:
            raise refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= body["max_tokens"]:
            raise refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    forced = (body.get("tool_choice") or {}).get("type") in {"any", "tool"}
    if forced and (kind == "enabled" or not family.forced_tools):
        raise refusal("Thinking may not be enabled when tool_choice forces tool use.")
    if kind != "disabled" and (body.get("temperature", 1) != 1 or "top_k" in body):
        raise refusal("`temperature` may only be set to 1 when thinking is enabled.")


def check_messages(body: Body, family: ModelFamily, betas: Sequence[str]) -> None:
    """Refuse roles, blocks, signatures, calls and last turns that the API does not take."""
    messages = body["messages"]
    if not messages:
        raise refusal("messages: at least one message is required")
    takes_system = any(beta.startswith("mid-conversation-") for beta in betas)
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in {"user", "assistant"} and not (role == "system" and takes_system):
            raise refusal(
                f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system`'
                ' parameter, not "system" as an input message role.'
            )
        for place, block in enumerate(blocks_of(message)):
            check_block(block, f"messages.{index}.content.{place}", betas)
    check_pairs(messages)
    last = messages[-1]
    if last["role"] == "assistant":
        if not family.prefill:
            raise refusal(
                "This model does not support assistant message prefill. The conversation must end with a user"
                " message."
            )
        text = next((block.get("text", "") for block in reversed(list(blocks_of(last)))), "")
        if text != text.rstrip():
            raise refusal("messages: final assistant content cannot end with trailing whitespace")


def check_block(block: Body, where: str, betas: Sequence[str]) -> None:
    """Refuse one block."""
    kind = block.get("type")
    needed = BLOCK_BETAS.get(str(kind))
    if needed is not None:
        if not any(beta.startswith(needed) for beta in betas):
            raise unknown_tag(where, kind)
        return
    known = BLOCKS.get(str(kind))
    if kind == "server_tool_use" or (known is None and str(kind).endswith("_tool_result")):
        return
    if known is None:
        raise unknown_tag(where, kind)
    for name in block:
        if name not in known and name not in {"type", "cache_control"}:
            raise refusal(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if kind == "text" and not block.get("text", "").strip():
        raise refusal("messages: text content blocks must contain non-whitespace text")
    if kind == "thinking":
        check_thought(block, where)


def check_thought(block: Body, where: str) -> None:
    """Refuse a thought without its signature, or with a wrong one."""
    if "cache_control" in block:
        raise refusal(f"{where}.thinking.cache_control: Extra inputs are not permitted")
    if "signature" not in block:
        raise refusal(f"{where}.thinking.signature: Field required")
    if not hmac.compare_digest(str(block["signature"]), sign(block.get("thinking", ""))):
        raise refusal(f"{where}: Invalid `signature` in `thinking` block")


BLOCK_BETAS: Final = {
    "compaction": "compact-",
    "fallback": ("server-side-fallback-", "fallback-credit-"),
    "mcp_tool_use": "mcp-client-",
    "tool_addition": "mid-conversation-tool-changes-",
    "tool_removal": "mid-conversation-tool-changes-",
    "mid_conv_system": "mid-conversation-system-",
}


def unknown_tag(where: str, kind: object) -> StrictRefusalError:
    """Return the refusal of an unknown block."""
    return refusal(
        f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags:"
        f" {', '.join(repr(name) for name in sorted(BLOCKS))}"
    )


def check_pairs(messages: Sequence[Body]) -> None:
    """Refuse calls without results in the next message, results without calls, and repeated ids."""
    seen: set[str] = set()
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        results = {block["tool_use_id"] for block in blocks_of(message) if block.get("type") == "tool_result"}
        orphans = sorted(results - open_calls)
        if orphans:
            raise refusal(
                f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {', '.join(orphans)}. Each `tool_result` block must have a corresponding `tool_use` block"
                " in the previous message."
            )
        if open_calls - results:
            raise refusal(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately"
                f" after: {', '.join(sorted(open_calls - results))}. Each `tool_use` block must have a"
                " corresponding `tool_result` block in the next message."
            )
        calls = [block["id"] for block in blocks_of(message) if block.get("type") == "tool_use"]
        if len(set(calls)) < len(calls) or seen & set(calls):
            raise refusal("messages: `tool_use` ids must be unique")
        seen |= set(calls)
        open_calls = set(calls)
    if open_calls:
        raise refusal(
            f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks"
            f" immediately after: {', '.join(sorted(open_calls))}."
        )


def check_cached(body: Body) -> None:
    """Refuse more than four cached blocks, and cached empty texts."""
    blocks = [*(body.get("tools") or ()), *blocks_of({"content": body.get("system") or []})]
    for message in body["messages"]:
        for block in blocks_of(message):
            blocks.append(block)
            inner = block.get("content")
            blocks += inner if isinstance(inner, list) else []
    cached = [block for block in blocks if isinstance(block, dict) and block.get("cache_control")]
    if len(cached) > MAX_CACHED:
        raise refusal(
            f"A maximum of {MAX_CACHED} blocks with cache_control may be provided. Found {len(cached)}."
        )
    if any(block.get("type") == "text" and not block.get("text") for block in cached):
        raise refusal("cache_control cannot be set for empty text blocks")


def blocks_of(message: Mapping[str, Any]) -> Iterator[Body]:
    """Return the blocks of a message."""
    content = message.get("content")
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content or ()
