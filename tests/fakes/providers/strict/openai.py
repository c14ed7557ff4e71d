"""OpenAI's chat completions: the parameters that each family refuses, with the error texts."""

from tests.fakes.providers.strict.base import Body, StrictRefusalError, openai_error, refuse_unknown

KNOWN = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "n", "stop", "seed", "user", "store", "metadata"),
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity"),
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"),
        *("service_tier", "prediction", "audio", "modalities", "web_search_options", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "moderation"),
    }
)


def known_fields(body: Body) -> None:
    """Refuse a field that chat completions do not have."""
    refuse_unknown(
        body,
        KNOWN,
        lambda name: StrictRefusalError(400, openai_error(f"Unrecognized request argument supplied: {name}")),
    )
