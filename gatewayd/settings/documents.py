"""Documents generated from the settings: the sample file, and the lists of gatewayd.toml(5)."""

import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from gatewayd.settings.definitions import TABLES, SettingDescription, definitions, table_fields

_HEAD: Final = """\
# Configuration of gatewayd(8): every setting with its default; see gatewayd.toml(5).
# Files conf.d/*.toml beside this one, the environment and credentials take precedence over it.
"""

_PROVIDERS: Final = """\
#[[providers]]
#name = "example"
#kind = "openai"
#base_url = "https://llm.example.org/v1"
#key_credential = "example-key"
#prefix = "example."
#models = ["small", "large"]
"""

_OAUTH_PROVIDERS: Final = """\
#[[oauth_providers]]
#name = "example"
#issuer = "https://login.example.org"
#client_id = "gateway"
#client_secret_credential = "example-secret"
"""

_PROVIDER_RULES: Final = """\
#[[provider_rules]]
#model = "gpt-oss-*"
#efforts = ["low", "medium", "high"]
#drop = ["parallel_tool_calls"]
"""

_MODEL_PRICES: Final = """\
#[[model_prices]]
#model = "llama-3.3-70b*"
#provider = "example"
#prompt = 0.6
#completion = 0.8
"""

_TABLES: Final = {
    "providers": _PROVIDERS,
    "provider_rules": _PROVIDER_RULES,
    "model_prices": _MODEL_PRICES,
    "oauth_providers": _OAUTH_PROVIDERS,
}

_COMMENT_WIDTH: Final = 98
_MANUAL_WIDTH: Final = 78


def render_sample() -> str:
    """Return config/gatewayd.toml: all settings, commented out, by category."""
    parts = [_HEAD]
    for category, members in groupby(definitions().values(), key=lambda each: each.category):
        parts.append(f"\n### {category}\n")
        parts.extend(_sample(each) for each in members)
    return "".join(parts)


def render_settings_list() -> str:
    """Return the settings as mdoc, a subsection for each category."""
    parts = []
    for category, members in groupby(definitions().values(), key=lambda each: each.category):
        parts += [f".Ss {category}", ".Bl -tag -width Ds"]
        for each in members:
            parts += _item(each)
        parts.append(".El")
    return "\n".join(parts) + "\n"


def render_table(table: str) -> str:
    """Return the keys of a table of `definitions.TABLES` as mdoc."""
    parts = [".Bl -tag -width Ds"]
    for name, expects, description in table_fields(table):
        parts += [f".It Ic {name}", *_sentences(description), *_sentences(f"Takes {expects}.")]
    return "\n".join([*parts, ".El"]) + "\n"


def update_manual(page: str) -> str:
    """Return the manual page with new text between the comments that mark its generated lists."""
    tables = [(table, render_table(table)) for table in TABLES]
    for name, text in (("settings", render_settings_list()), *tables):
        begin, end = f'.\\" begin {name}\n', f'.\\" end {name}\n'
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(
                f"cannot update the manual page: the marks of the list {name} do not occur exactly once"
            )
        before, rest = page.split(begin)
        page = before + begin + text + end + rest.split(end)[1]
    return page


def _sample(each: SettingDescription) -> str:
    note = f"{each.description} Takes {_accepted(each)}."
    comment = "\n".join(f"# {line}" for line in _wrap(note, _COMMENT_WIDTH))
    value = _TABLES.get(each.name, f"#{each.name} = {each.default}\n")
    return f"\n{comment}\n{value}"


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _accepted(each: SettingDescription) -> str:
    if not each.separator:
        return each.expects
    return f"{each.expects}; as one text, separated by {each.separator!r}"


def _item(each: SettingDescription) -> Iterator[str]:
    yield f".It Ic {each.name}"
    yield from _sentences(each.description)
    yield from _sentences(f"Takes {_accepted(each)}.")
    yield f"Default: {_plain(each.default)}."
    if each.variables:
        *others, last = (name.upper() for name in each.names)
        yield from ("Environment:", *(f".Ev {name} ," for name in others), f".Ev {last} .")
    yield "Applied by a reload." if each.reloadable else "Applied at start."


def _sentences(text: str) -> Iterator[str]:
    """Yield text as mdoc lines: each sentence starts a line, and no line is too long."""
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", text):
        yield from _wrap(_plain(sentence), _MANUAL_WIDTH)


def _plain(text: str) -> str:
    """Return text with the characters escaped that roff would interpret."""
    escaped = text.replace("\\", "\\e").replace('"', "\\(dq").replace("'", "\\(aq").replace("-", "\\-")
    return re.sub(r"(?m)^(?=\.)", r"\\&", escaped)
