"""An address that the provider takes away is not shown, not reserved and not good for signing in."""

from tests.clients.scim.gateway import Gateway
from tests.clients.scim.story import op, patch

PASSWORD = "a password of the tests"


def signs_in(gateway: Gateway, email: str) -> bool:
    status, _ = gateway.daemon.call("POST", "/api/v1/auths/signin", {"email": email, "password": PASSWORD})
    assert status in (200, 400)
    return status == 200


def test_an_address_that_is_taken_away_is_free(gateway: Gateway) -> None:
    body = {
        "userName": "mover@upn.example.org",
        "emails": [{"value": "old@mail.example.org", "primary": True}],
    }
    moved = gateway.ask("POST", "/Users", body)
    assert moved.status == 201
    set_password = gateway.daemon.run_ctl(
        "user", "password", "old@mail.example.org", "--password-file", "-", input=PASSWORD
    )
    assert set_password.returncode == 0, set_password.stderr
    assert signs_in(gateway, "old@mail.example.org")
    path = f"/Users/{moved.json['id']}"
    shown = gateway.ask("PATCH", path, patch(op("remove", "emails")))
    assert (shown.status, "emails" in shown.json) == (200, False)
    assert not signs_in(gateway, "old@mail.example.org")
    assert signs_in(gateway, "mover@upn.example.org")
    taken = gateway.ask("POST", "/Users", {"userName": "old@mail.example.org"})
    assert taken.status == 201
    back = gateway.ask("PUT", path, body)
    assert (back.status, back.json["scimType"]) == (409, "uniqueness")
    for each in (path, f"/Users/{taken.json['id']}"):
        assert gateway.ask("DELETE", each).status == 204
