import sys

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.open_webui.web_library import load_web_module


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    with pytest.raises(
        GatewayError, match=r"cannot give plugins starlette\.requests: the extra 'plugins' is not installed"
    ) as raised:
        load_web_module("starlette.requests")
    assert raised.value.kind is ErrorKind.NOT_CONFIGURED


def test_one_that_is_there_is_given() -> None:
    assert load_web_module("starlette.requests").Request
