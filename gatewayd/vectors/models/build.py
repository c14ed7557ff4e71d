"""Child process that builds a built-in model: `python -m gatewayd.vectors.models.build`.

Request: `{"model", "state"}`. Reply: `{"folder"}`.

Only this process reads and writes ONNX files (`onnx_file`). It uses protobuf, which onnxruntime needs anyway;
the package `onnx` serves the tests only. A release that published the built folders as packages (one for
processors that need reduced weights, one for others) would replace this process, `onnx_file`, `onnx_writer`,
`minilm` and `e5`; `catalogue` would then hold the hashes of the published files.
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
"""Modules whose `fill` writes a model; e5-small needs libraries of the extra `multilingual`."""


def build(state: Path, model: PackagedModel) -> Path:
    """Build the folder of a model below the state directory unless it is ready, and return it.

    Raises not_configured if the package is missing or holds other weights, internal if the folder cannot be
    written.
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
    """Answer requests until the parent closes the pipe."""
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
