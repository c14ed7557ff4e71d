"""Methods of plugins that are made of a text, as they are and inline."""

import textwrap
from types import ModuleType
from typing import Any

import orjson

from gatewayd.plugins.inline.methods import InlineMethod, make_inline

Event = dict[str, Any]


class Hook:
    """A filter with the method `stream` of a body, which gets `self` and `event`."""

    def __init__(self, body: str, head: str = "", more: str = "", prefix: str = "") -> None:
        method = f"{prefix}def stream(self, event):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        inside = textwrap.indent(textwrap.dedent(more).strip() + "\n\n" + method.strip() + "\n", "    ")
        self.source = f"{textwrap.dedent(head)}\nclass Filter:\n{inside}"
        module = ModuleType("plugin")
        exec(compile(self.source, "plugin.py", "exec"), vars(module))
        self.module = module
        self.instance = module.Filter()
        self.inline = self.make()

    def make(self) -> InlineMethod | None:
        """Return the method inline."""
        cls = getattr(type(self.instance), "Valves", None)
        return make_inline(self.instance, "stream", "event", self.source, cls)

    def really(self, event: Event) -> Any:
        """Return what the method itself makes of an event."""
        return self.instance.stream(orjson.loads(orjson.dumps(event)))

    def run(self, event: Event) -> Any:
        """Return what the method makes of an event inline, None where it gives up."""
        assert self.inline is not None
        made = self.inline.run(orjson.dumps(event))
        return None if made is None else orjson.loads(made)
