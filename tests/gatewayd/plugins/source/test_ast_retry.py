"""Tests for gatewayd.plugins.source.ast_retry."""

import ast

import pytest

from gatewayd.pipeline.tools.arguments import parse_arguments
from gatewayd.plugins.source.ast_retry import MAX_ATTEMPTS, retry_ast_parse
from gatewayd.plugins.source.code import parse

MISMATCH = "AST constructor recursion depth mismatch (before=21, after=24)"


class Disturbed:
    """Fails as `ast.parse` does when threads disturb each other, as often as it is told."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.parse = ast.parse

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.left:
            self.left -= 1
            raise SystemError(MISMATCH)
        return self.parse(*args, **kwargs)  # type: ignore[call-overload]


def test_what_threads_disturb_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "parse", Disturbed(2))
    assert isinstance(parse("x = 1").body[0], ast.Assign)
    monkeypatch.setattr(ast, "parse", Disturbed(2))
    assert parse_arguments("{'a': 1}") == {"a": 1}


def test_what_fails_each_time_is_raised() -> None:
    disturbed = Disturbed(MAX_ATTEMPTS)
    with pytest.raises(SystemError, match="mismatch"):
        retry_ast_parse(disturbed)
    assert disturbed.left == 0
