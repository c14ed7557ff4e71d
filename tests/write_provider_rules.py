"""Write the tables of gatewayd-dialects(7), PROVIDER RULES, which are generated from the rules.

Run from the top of the repository: python -m tests.write_provider_rules
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gatewayd.dialects.providers.changes import CHANGES
from gatewayd.dialects.providers.family import ENGINES, HOSTS
from gatewayd.dialects.providers.field_changes import HARMLESS, LIMITS
from gatewayd.dialects.providers.rules import NO_RULES, ImageForm, Protocol, Rules, Sampling, ThinkingForm
from gatewayd.dialects.providers.table import TABLES

PAGE: Final = Path(__file__).resolve().parent.parent / "man" / "gatewayd-dialects.7"

THINKING: Final = {
    ThinkingForm.EFFORT: "effort as reasoning_effort",
    ThinkingForm.TYPE: "thinking as thinking.type enabled or disabled",
    ThinkingForm.SWITCH: "thinking as enable_thinking and thinking_budget",
    ThinkingForm.OBJECT: "effort as reasoning.effort or reasoning.max_tokens",
    ThinkingForm.TEMPLATE: "no thinking as chat_template_kwargs.enable_thinking false",
    ThinkingForm.NATIVE: "thinking as it came",
}

SAMPLING: Final = {
    Sampling.TAKEN: "sampling fields",
    Sampling.REFUSED: "no sampling fields",
    Sampling.WITHOUT_EFFORT: "of the sampling fields temperature, top_p, logprobs while the effort is none",
}


def render_makers() -> str:
    """Return the makers with their hosts as mdoc."""
    parts = ['.Bl -column "perplexity" "a host name that is rather long"', ".It Sy maker Ta Sy told by"]
    for maker in TABLES:
        hosts = [f"*{host}" if host[0] in ".-" else host for host, known in HOSTS if known == maker]
        hosts += [f"owned_by {owner}" for owner, engine in ENGINES.items() if engine == maker]
        parts.append(f".It {maker} Ta {escape(', '.join(hosts) or 'the setting maker')}")
    return "\n".join([*parts, ".El", ""])


def render_rules() -> str:
    """Return the table of each maker as mdoc: what its last row says, and what others say beyond."""
    parts = []
    for maker, rows in TABLES.items():
        base = rows[-1].rules
        parts += [".Pp", f".Sy {maker}", ".Bl -tag -width Ds"]
        shared = {row.pattern for row in TABLES["openai"]} if maker == "azure" else set()
        for row in (row for row in rows[:-1] if row.pattern not in shared):
            parts += [f".It Li {escape(row.pattern)}", *_sentence(row.rules, base)]
        parts += [".It the families of openai", "As there."] if shared else []
        parts += [".It others" if len(rows) > 1 else ".It all models", *_sentence(base, NO_RULES), ".El"]
    return "\n".join([*parts, ""])


def render_harmless() -> str:
    """Return the fields that a refusal may take out of a request as mdoc."""
    return _listed(sorted(HARMLESS)) + f"\n.Pp\nClamped or renamed are\n{_listed(LIMITS)}\n"


def render_changes() -> str:
    """Return the names of the changes that settings and records may make as mdoc."""
    return f"{_listed(CHANGES)}\n"


LISTS: Final = {
    "makers": render_makers,
    "provider rules": render_rules,
    "harmless fields": render_harmless,
    "changes of rules": render_changes,
}


def update(page: str) -> str:
    """Return the page with new text between the comments that mark its generated lists."""
    for name, render in LISTS.items():
        begin, end = f'.\\" begin {name}\n', f'.\\" end {name}\n'
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the marks of {name} do not occur exactly once")
        head, rest = page.split(begin)
        page = head + begin + render() + end + rest.split(end)[1]
    return page


def describe(rules: Rules) -> Iterator[str]:
    """Yield what rules say, one fact each."""
    if rules.protocol is not Protocol.CHAT:
        yield "reached by Responses" + (
            "" if rules.protocol is Protocol.RESPONSES else " when there are tools"
        )
    if rules.instructions:
        yield f"instructions have the role {rules.instructions}"
    yield from _describe_thinking(rules)
    yield SAMPLING[rules.sampling]
    if not rules.has_tools_with_effort:
        yield "tools in chat only with effort none"
    yield from _describe_tools(rules)
    yield from _describe_fields(rules)


def _describe_thinking(rules: Rules) -> Iterator[str]:
    if rules.efforts is not None:
        words = ", ".join(rules.efforts)
        yield f"effort {words}" if words else "no word of effort"
    if rules.default_effort:
        yield f"effort {rules.default_effort} without a word"
    if rules.always_thinks:
        yield "thinking cannot be turned off"
    if rules.thinking is not ThinkingForm.EFFORT:
        yield THINKING[rules.thinking]
    if rules.thinking_types is not None:
        yield f"thinking {', '.join(rules.thinking_types)}"
    if rules.resting_effort:
        yield f"effort up to {rules.resting_effort} without thinking"
    if rules.thinks_in_streams:
        yield "thinks in streams only"


def _describe_tools(rules: Rules) -> Iterator[str]:
    if rules.tool_choices is not None:
        words = ", ".join(sorted(rules.tool_choices))
        yield f"tool_choice {words}" if words else "no tool_choice"
    if rules.required_word != "required":
        yield f"required is called {rules.required_word}"
    if rules.needs_tools:
        yield "tool_choice and parallel_tool_calls only beside tools"
    if rules.strict_schemas:
        yield "strict schemas in the subset of OpenAI only"
    for name in sorted(rules.dropped_tool_fields):
        yield f"no {name} of tools"
    if rules.response_formats is not None:
        yield f"response_format {', '.join(sorted(rules.response_formats))}"
    if rules.images is not ImageForm.ANY:
        yield "no pictures" if rules.images is ImageForm.NONE else "no addresses of pictures"


def _describe_fields(rules: Rules) -> Iterator[str]:
    for name, other in sorted(rules.renames.items()):
        yield f"{name} becomes {other}"
    for name, (low, high) in sorted(rules.ranges.items()):
        yield f"{name} from {low} to {high}"
    for name, values in sorted(rules.values.items()):
        yield f"{name} only {' or '.join(map(str, values))}"
    if rules.max_output:
        yield f"at most {rules.max_output} tokens of an answer"
    if rules.max_stop:
        yield f"at most {rules.max_stop} stop sequences"
    for name in sorted(rules.known):
        yield f"knows {name}"
    for name in sorted(rules.dropped):
        yield f"no {name}"


def _sentence(rules: Rules, base: Rules) -> list[str]:
    known = set(describe(base))
    facts = [fact for fact in describe(rules) if fact not in known]
    plain = [
        fact for fact in facts if not fact.startswith(("no ", "knows ")) or " of " in fact or fact in _WHOLE
    ]
    names = {
        word: [
            fact.removeprefix(f"{word} ")
            for fact in facts
            if fact.startswith(f"{word} ") and fact not in plain
        ]
        for word in ("no", "knows")
    }
    if names["knows"]:
        plain.append(f"only these fields: {', '.join(names['knows'])}")
    if names["no"]:
        plain.append(f"not {', '.join(names['no'])}")
    text = "; ".join(plain) or "as others"
    return _wrapped(escape(text[0].upper() + text[1:] + "."))


_WHOLE: Final = frozenset(
    {"no word of effort", "no sampling fields", "no tool_choice", "no pictures"}
    | {THINKING[ThinkingForm.TEMPLATE]}
)
"""Facts that begin with "no" and are no names of fields."""


def _listed(names: Sequence[str] | object) -> str:
    given = list(names)  # type: ignore[call-overload]
    lines = [f".Ic {name} ," for name in given[:-1]]
    return "\n".join([*lines, f".Ic {given[-1]} ."])


def _wrapped(text: str, width: int = 78) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]


def escape(text: str) -> str:
    """Return a text as roff, in which a hyphen stays a hyphen and a backslash a backslash."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("'", "\\(aq")


def main() -> None:
    PAGE.write_text(update(PAGE.read_text()))


if __name__ == "__main__":
    main()
