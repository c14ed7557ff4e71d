"""Tests for gatewayd.http.web.policies."""

import pytest

from gatewayd.http.web.policies import FRAME_POLICY, PageRules, page_policy, script_hash


def test_the_strict_policy_permits_one_inline_script_and_nothing_from_elsewhere() -> None:
    policy = page_policy(PageRules(), ["{}"])
    assert f"script-src 'self' 'sha256-{script_hash('{}')}'; " in policy
    assert "frame-src 'self'; " in policy
    assert "require-trusted-types-for 'script'" in policy
    for word in ("unsafe", "http", "*", "script-src 'self' blob:"):
        assert word not in policy


def test_administrators_may_loosen_two_things() -> None:
    policy = page_policy(
        PageRules(execute=True, embed_hosts=["video.example.org", "*.example.com:8443"]), ["x"]
    )
    assert f"'sha256-{script_hash('x')}' blob:; style-src 'self'" in policy
    assert "frame-src 'self' https://video.example.org https://*.example.com:8443; " in policy


@pytest.mark.parametrize("word", ["allow-same-origin", "allow-popups", "allow-modals", "https:", "'self';"])
def test_embeds_get_no_origin_and_no_network(word: str) -> None:
    assert word not in FRAME_POLICY
    assert FRAME_POLICY.startswith("sandbox allow-scripts ")
