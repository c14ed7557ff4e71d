"""gatewayctl secret rotate-provider."""

import json
from pathlib import Path

from tests.fakes.daemons.control_socket import Control, Ctl

ROTATE = ("secret", "rotate-provider")


async def test_the_key_of_a_provider_is_read_from_a_file(ctl: Ctl, control: Control, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("canary-new-key\n")
    file = ("--key-file", str(tmp_path / "key"))
    dry = await ctl(*ROTATE, "acme", *file, "--dry-run")
    assert dry.code == 0, dry.err
    assert "canary" not in dry.out
    assert control.providers.in_use()[0].key == "canary-stored-key"
    done = await ctl(*ROTATE, "acme", "--key-file", "-", "--yes", "-o", "json", stdin="canary-new-key\n")
    assert json.loads(done.out) == {
        "name": "acme",
        "base_url": "https://acme.test/v1",
        "models": 2,
        "outcome": "changed",
        "dry_run": False,
    }
    assert control.providers.in_use()[0].key == "canary-new-key"


async def test_refusals(ctl: Ctl) -> None:
    assert (await ctl(*ROTATE, "acme", "--yes")).code == 2
    assert (await ctl(*ROTATE, "acme", "--key-file", "-", "--yes", stdin="")).code == 2
    assert (await ctl(*ROTATE, "none", "--key-file", "-", "--yes", stdin="k")).code == 5
    fixed = await ctl(*ROTATE, "hosted", "--key-file", "-", "--yes", stdin="k")
    assert (fixed.code, "it comes from file /etc/gatewayd.toml line 3" in fixed.err) == (6, True)
    assert (await ctl(*ROTATE, "hosted", "--key-file", "-", "--dry-run", stdin="k")).code == 0
