"""The header of a plugin: `key: value` lines in its first docstring (peer-compatible)."""

import re
import sys
from collections.abc import Mapping
from typing import Final

_LINE: Final = re.compile(r"\s*+([a-z_]++):(.*)", re.IGNORECASE)
_QUOTES: Final = ('"""', "'''")
_CONTINUES: Final = ("<", ">", "=", "!", "~")


def parse_frontmatter(source: str) -> dict[str, str]:
    """Return the header by lower-case keys, all values text; empty when the source does not begin with one.

    Lines without a key are skipped, except behind a value that ends with a comma, which they continue. A key
    that comes twice keeps its last value.
    """
    lines = source.lstrip("\ufeff").splitlines()
    first = lines[0].strip() if lines else ""
    quote = first[:3]
    if quote not in _QUOTES:
        return {}
    found: dict[str, str] = {}
    last = ""
    for line in [first[3:], *lines[1:]]:
        text, end, _ = line.partition(quote)
        match = _LINE.fullmatch(text)
        if match:
            last = match[1].lower()
            found[last] = match[2].strip()
        elif last and text.strip() and found[last].endswith(","):
            found[last] += f" {text.strip()}"
        else:
            last = ""
        if end:
            break
    return found


def read_requirements(manifest: Mapping[str, str]) -> tuple[str, ...]:
    """Return the packages that a header requires, in its order, each once, without modules of Python itself.

    A comma inside a version or an extra (`aiohttp>=3,<4`, `a[b,c]`) divides nothing.
    """
    text = manifest.get("requirements", "").strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    items: list[list[str]] = []
    brackets = 0
    for part in text.split(","):
        item = part.strip().strip("'\"").strip()
        if items and (brackets > 0 or item.startswith(_CONTINUES)):
            items[-1].append(item)
        elif item and item not in sys.stdlib_module_names:
            items.append([item])
            brackets = 0
        else:
            continue
        brackets += item.count("[") - item.count("]")
    return tuple(dict.fromkeys(",".join(parts) for parts in items))


def read_switch(manifest: Mapping[str, str], key: str, default: bool) -> bool:
    """Return a yes or no of a header; anything else is the default."""
    word = manifest.get(key, "").strip().lower()
    return {"true": True, "yes": True, "false": False, "no": False}.get(word, default)
