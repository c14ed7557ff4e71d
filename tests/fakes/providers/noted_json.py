"""JSON that remembers which names were asked of it: what a parser knows, whatever its tables say."""

from typing import Any


class Noted(dict[str, Any]):
    """An object that adds each name that is looked up to `seen`."""

    def __init__(self, value: dict[str, Any], seen: set[str]) -> None:
        super().__init__(value)
        self._seen = seen

    def get(self, name: Any, default: Any = None) -> Any:
        self._seen.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._seen.add(name)
        return super().__getitem__(name)


def note(value: Any, seen: set[str]) -> Any:
    """Return a JSON value whose objects, at every depth, note what is looked up in them."""
    if isinstance(value, dict):
        return Noted({name: note(item, seen) for name, item in value.items()}, seen)
    return [note(item, seen) for item in value] if isinstance(value, list) else value
