"""Settings of the listeners: addresses, certificate and unix sockets."""

from pathlib import Path

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import SERVER, restart, setting


class ListenerFields(BaseSettings):
    """The settings of the listeners."""

    host: types.Line = setting(
        restart(SERVER),
        "127.0.0.1",
        "Address to listen on; a socket of the service manager replaces it, and none is used when empty.",
        max_length=255,
    )
    port: types.Whole = setting(
        restart(SERVER), 8080, "TCP port to listen on; 0 takes a free one.", ge=0, le=65535
    )
    proxy_protocol: types.Switch = setting(
        restart(SERVER),
        False,
        "Whether each connection by TCP begins with a header of the PROXY protocol and comes from"
        " trusted_proxies; others are refused.",
    )
    tls_certificate: types.OptionalFile = setting(
        restart(SERVER),
        None,
        "PEM file with the certificate of the HTTP interface and its chain; plain HTTP when empty.",
    )
    tls_key: types.OptionalFile = setting(
        restart(SERVER), None, "PEM file with the key of tls_certificate, not encrypted."
    )
    http_socket: types.OptionalSocketPath = setting(
        restart(SERVER),
        None,
        "Unix socket of the HTTP interface for a proxy on this machine, in plain HTTP; none when empty.",
    )
    http_socket_group: types.Line = setting(
        restart(SERVER), "", "Group that may use http_socket, such as that of the proxy."
    )
    control_socket: types.SocketPath = setting(
        restart(SERVER),
        Path("/run/gatewayd/control.sock"),
        "Unix socket of the control API, for gatewayctl(1); in the service manager's runtime directory"
        " by default.",
    )
    control_group: types.Line = setting(
        restart(SERVER),
        "",
        "Group that may use the control socket, as root and the daemon's user may.",
    )
