from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gatewayd.plugins.open_webui.secret_key import derive_secret


def test_it_is_hkdf_and_not_the_secret() -> None:
    known = HKDF(SHA256(), 32, None, b"gatewayd plugins").derive(b"top secret").hex()
    assert derive_secret("top secret") == known
    assert derive_secret("top secret2") != known
    assert derive_secret("") == ""
