"""Content policies of the page, of the frame of embeds and of the service worker."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CONTENT_POLICY: Final = "Content-Security-Policy"

FRAME_POLICY: Final = (
    "sandbox allow-scripts allow-forms allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; "
    "connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""Policy of the document that holds an embed: scripts run in an origin of its own, without network."""

PICTURE_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src https: http:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Policy of the document that shows one picture of another host, which somebody asked for."""

WORKER_POLICY: Final = "default-src 'none'; connect-src 'self'"

FILE_HEADERS: Final[Mapping[str, str]] = {"Cross-Origin-Resource-Policy": "same-origin"}
"""Headers of the files of the page, beside those of every answer of the gateway."""

DOCUMENT_HEADERS: Final[Mapping[str, str]] = {
    **FILE_HEADERS,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Headers of the documents of the page, beside their policy."""


@dataclass(frozen=True, slots=True)
class PageRules:
    """What administrators allow the page beyond the strict policy.

    With `execute` plugins may run code in the page. `embed_hosts` are the hosts whose pages answers may
    embed, each `host`, `host:port` or `*.domain`.
    """

    execute: bool = False
    embed_hosts: Sequence[str] = ()


def page_policy(rules: PageRules, inline: Sequence[str]) -> str:
    """Return the policy of the HTML of a view; `inline` are the texts of its inline scripts."""
    hashes = " ".join(f"'sha256-{script_hash(text)}'" for text in inline)
    scripts = f"'self' {hashes}{' blob:' if rules.execute else ''}".rstrip()
    frames = " ".join(["'self'", *(f"https://{host}" for host in rules.embed_hosts)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data: blob:; "
        f"font-src 'self'; connect-src 'self'; frame-src {frames}; worker-src 'self'; manifest-src 'self'; "
        "media-src 'self' blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types page dompurify"
    )


def script_hash(text: str) -> str:
    """Return the hash of an inline script (Content Security Policy Level 3, 2.3.1)."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
