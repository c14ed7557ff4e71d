"""The process that makes a built-in model ready, and ends: `python -m gatewayd.vectors.build`.

It asks for `{"model", "state"}` and answers `{"folder"}`. `onnx` is loaded in this process alone.
"""

from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError, Kind
from gatewayd.vectors import e5, fused, minilm, models
from gatewayd.vectors.models import E5_SMALL, GRAPH, MINILM, MINILM_TOKENIZER, TOKENIZER, Builtin
from gatewayd.workers import Parent


def build(state: Path, model: Builtin) -> Path:
    """Make a model's folder below the state directory unless it is ready, and return it.

    Raises not_configured when its package is missing or holds something else, internal when the folder cannot
    be written.
    """
    folder = models.folder_of(state, model)
    is_reduced = models.needs_reduction()
    try:
        models.make(
            folder, model, lambda part: FILLS[model.name](part, is_reduced=is_reduced), is_reduced=is_reduced
        )
    except OSError as error:
        sentence = f"cannot write the embedding model {model.name!r} to {folder}: {error.strerror or error}"
        raise GatewayError(Kind.INTERNAL, sentence) from error
    return folder


def main() -> None:
    """Answer until the parent closes the pipe."""
    parent = Parent()
    for message, _ in parent.messages():
        try:
            folder = build(Path(message["state"]), models.find_builtin(message["model"]))
        except GatewayError as error:
            parent.refuse(message, error)
        else:
            parent.answer(message, {"folder": str(folder)})


def _fill_minilm(part: Path, *, is_reduced: bool) -> None:
    fused.write(minilm.read(models.find_source(MINILM)), part / GRAPH, is_reduced=is_reduced)
    (part / TOKENIZER).write_bytes(MINILM_TOKENIZER.read_bytes())


def _fill_e5(part: Path, *, is_reduced: bool) -> None:
    packed = e5.read(models.find_source(E5_SMALL))
    packed.tokenizer().save(str(part / TOKENIZER))
    fused.write(packed.encoder(), part / GRAPH, is_reduced=is_reduced)


FILLS: Final = {MINILM.name: _fill_minilm, E5_SMALL.name: _fill_e5}

if __name__ == "__main__":
    main()
