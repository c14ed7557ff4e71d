"""gatewayctl metrics."""

from tests.fakes.daemons.control_socket import Ctl


async def test_the_text_is_printed_as_it_is_in_every_format(ctl: Ctl) -> None:
    for options in ((), ("-o", "json")):
        done = await ctl("metrics", *options)
        assert (done.code, done.out) == (0, "gatewayd_ready 1.0\n")


async def test_an_argument_is_refused_and_nothing_is_printed(ctl: Ctl) -> None:
    done = await ctl("metrics", "gatewayd_ready")
    assert done.code == 2
    assert done.out == ""
    assert "gatewayctl metrics --help" in done.err
