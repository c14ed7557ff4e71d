"""Tests for gatewayd.pictures.addresses."""

import base64

import pytest

from gatewayd.pictures.addresses import MAX_PICTURE_CHARACTERS, is_picture
from gatewayd.pictures.icons import shown_icon

PNG = b"\x89PNG\r\n\x1a\n rest"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


def inside(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/user.png",
        "https://a.example/p.png",
        "HTTP://a.example/p.png",
        inside("image/png", PNG),
        inside("image/jpeg", b"\xff\xd8\xff\xe0"),
        inside("image/gif", b"GIF89a"),
        inside("image/webp", b"RIFF\n\r\0\0WEBPVP8 "),
        inside("IMAGE/PNG", PNG).replace("data", "DATA"),
    ],
)
def test_pictures(address: str) -> None:
    assert is_picture(address)
    assert shown_icon(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//a.example/p.png",
        "/\\a.example/p.png",
        inside("image/svg+xml", SVG),
        inside("image/png", SVG),
        inside("image/png", b"<html>" + PNG),
        inside("image/gif", PNG),
        inside("text/html", PNG),
        inside("image/png;charset=x", PNG),
        "data:image/png," + "a" * 9,
        "data:image/png;base64,",
        "data:image/png;base64,%89PNG",
        inside("image/png", PNG) + "<script>",
        inside("image/png", PNG + b"a" * MAX_PICTURE_CHARACTERS),
        "/" + "a" * MAX_PICTURE_CHARACTERS,
    ],
)
def test_what_is_no_picture(address: str) -> None:
    assert not is_picture(address)
