"""gatewayctl secret rotate-provider."""

import json
from pathlib import Path
from typing import Any

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
        "not_tested": "",
        "outcome": "changed",
        "dry_run": False,
    }
    assert control.providers.in_use()[0].key == "canary-new-key"


async def test_a_key_that_the_list_of_models_does_not_need_is_said_to_be_untested(
    ctl: Ctl, control: Control
) -> None:
    tester: Any = control.providers._tester
    tester.doubt = "its models are listed without a key"
    words = (*ROTATE, "acme", "--key-file", "-")
    dry = await ctl(*words, "--dry-run", stdin="k")
    assert (dry.code, f"not tested: {tester.doubt}" in " ".join(dry.out.split())) == (0, True)
    assert f"The key was not tested: {tester.doubt}." in dry.err
    done = await ctl(*words, "--yes", "-o", "json", stdin="canary-new-key")
    assert (json.loads(done.out)["not_tested"], json.loads(done.out)["outcome"]) == (tester.doubt, "changed")
    assert control.providers.in_use()[0].key == "canary-new-key"


async def test_refusals(ctl: Ctl) -> None:
    assert (await ctl(*ROTATE, "acme", "--yes")).code == 2
    assert (await ctl(*ROTATE, "acme", "--key-file", "-", "--yes", stdin="")).code == 2
    assert (await ctl(*ROTATE, "none", "--key-file", "-", "--yes", stdin="k")).code == 5
    fixed = await ctl(*ROTATE, "hosted", "--key-file", "-", "--yes", stdin="k")
    assert (fixed.code, "it comes from file /etc/gatewayd.toml line 3" in fixed.err) == (6, True)
    assert (await ctl(*ROTATE, "hosted", "--key-file", "-", "--dry-run", stdin="k")).code == 0
