"""The script that loads a folder of plugins."""

from pathlib import Path

import pytest

from tests.load_plugins import load_all


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_what_loads_is_counted_and_what_does_not_is_told(tmp_path: Path, isolation: str) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "good.py").write_text(
        "from open_webui.models.users import Nonsense\nclass Pipe:\n    def pipe(self, body): ...\n"
    )
    (folder / "broken.py").write_text("class Tools:\n    x = 1 / 0\n")
    (folder / "no-id-.py").write_text("class Pipe: ...\n")
    result = await load_all(folder, tmp_path / "state", isolation)
    assert result.loaded == {"pipe": 1}
    assert result.missing == {"open_webui.models.users.Nonsense": 1}
    assert result.failed["broken.py"] == "tool broken: ZeroDivisionError: division by zero (line 2)"
    assert "'no-id-'" in result.failed["no-id-.py"]
