"""The betas of Anthropic's messages: which the API knows, and the parts of a request that need one."""

from typing import Any, Final

BETAS: Final = frozenset(
    {
        *("claude-code-20250219", "context-1m-2025-08-07", "interleaved-thinking-2025-05-14"),
        *("redact-thinking-2026-02-12", "thinking-token-count-2026-05-13", "context-management-2025-06-27"),
        *("prompt-caching-scope-2026-01-05", "mid-conversation-system-2026-04-07", "advisor-tool-2026-03-01"),
        *("advanced-tool-use-2025-11-20", "effort-2025-11-24", "extended-cache-ttl-2025-04-11"),
        *("cache-diagnosis-2026-04-07", "compact-2026-01-12", "structured-outputs-2025-12-15"),
        *("structured-outputs-2025-11-13", "task-budgets-2026-03-13", "fast-mode-2026-02-01"),
        *("mcp-client-2025-11-20", "code-execution-2025-08-25", "skills-2025-10-02", "files-api-2025-04-14"),
        *("fine-grained-tool-streaming-2025-05-14", "server-side-fallback-2026-06-01"),
        *("server-side-fallback-2026-07-01", "fallback-credit-2026-06-01", "user-profiles-2026-03-24"),
        *("mid-conversation-tool-changes-2026-07-01", "output-128k-2025-02-19", "output-300k-2026-03-24"),
        *("tool-search-tool-2025-10-19", "web-fetch-2025-09-10", "computer-use-2025-11-24"),
        "token-efficient-tools-2026-03-28",
    }
)

FIELD_BETAS: Final = {
    "context_management": ("context-management-", "compact-"),
    "mcp_servers": ("mcp-client-",),
    "speed": ("fast-mode-",),
    "fallbacks": ("server-side-fallback-",),
    "fallback_credit_token": ("fallback-credit-",),
    "diagnostics": ("cache-diagnosis-",),
    "output_format": ("structured-outputs-",),
}
TOOL_FIELD_BETAS: Final = {
    "defer_loading": ("advanced-tool-use-", "tool-search-tool-"),
    "input_examples": ("advanced-tool-use-",),
    "allowed_callers": ("advanced-tool-use-", "code-execution-"),
}


def check_parts(beta: str, body: dict[str, Any]) -> bool:
    """Return whether a request has a field of a beta; True for a beta that has no field of its own."""
    fields = [name for name, betas in FIELD_BETAS.items() if beta.startswith(betas)]
    return not fields or any(name in body for name in fields)
