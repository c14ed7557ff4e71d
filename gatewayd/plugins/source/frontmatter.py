"""Header of a plugin: `key: value` lines in its first docstring, as in Open WebUI."""

import re
import sys
from collections.abc import Mapping
from typing import Final

_LINE: Final = re.compile(r"\s*+([a-z_]++):(.*)", re.IGNORECASE)
_QUOTES: Final = ('"""', "'''")
_CONTINUES: Final = ("<", ">", "=", "!", "~")


def parse_frontmatter(source: str) -> dict[str, str]:
    """Return the header by lower-case key, all values text; empty for a source without one.

    A line without a key continues a value that ends with a comma, and is skipped otherwise. The last value
    of a repeated key counts.
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
    """Return the required packages of a header in order, each once, without modules of the standard library.

    A comma within a version or an extra (`aiohttp>=3,<4`, `a[b,c]`) does not separate requirements.
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
    """Return a boolean of a header (true, yes, false, no); `default` for any other value."""
    word = manifest.get(key, "").strip().lower()
    return {"true": True, "yes": True, "false": False, "no": False}.get(word, default)
