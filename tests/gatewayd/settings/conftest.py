from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayd.settings import ConfigurationError, Settings, load

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Write a private file below the test's directory."""

    def write(text: str | bytes, name: str = "gatewayd.toml", mode: int = 0o600) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


@pytest.fixture
def load_text(file: Callable[..., Path], tmp_path: Path) -> Load:
    """Load a TOML text, an environment and overrides."""

    def run(
        text: str = "", environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> Settings:
        return load(file(text), environ or {}, overrides, default_file=tmp_path / "absent.toml")

    return run


@pytest.fixture
def problems(load_text: Load, tmp_path: Path) -> Problems:
    """Load what must fail and return the problems as text, without the test's directory."""

    def run(*args: Any, **more: Any) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            load_text(*args, **more)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return run
