from collections.abc import Callable

import pytest

from gatewayd.settings import Settings


def test_nobody_becomes_administrator_by_coming_first(load_text: Callable[..., Settings]) -> None:
    settings = load_text("")
    assert settings.enable_initial_admin_signup is False
    assert (settings.webui_admin_email, settings.webui_admin_name) == ("", "Admin")
    assert settings.password_min_length == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password_min_length", 7),
        ("password_min_length", 65),
        ("signin_failure_limit", 0),
        ("signup_limit", 0),
    ],
)
def test_limits_have_bounds(problems: Callable[..., list[str]], name: str, value: int) -> None:
    assert name in problems(f"{name} = {value}")[0]


def test_the_password_is_not_shown(load_text: Callable[..., Settings]) -> None:
    settings = load_text("webui_admin_email = 'a@b'\nwebui_admin_password = 'correct horse'")
    assert "correct horse" not in repr(settings)
