"""Certificates for tests of TLS: an authority of our own and servers that it vouches for."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Signs certificates; `folder` is where the files go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(f"authority of {folder.name}")
        builder = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    def trust(self) -> ssl.SSLContext:
        """Return a client's context that trusts this authority alone."""
        pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def serve(self, *names: str) -> ssl.SSLContext:
        """Return a server's context whose certificate is for these host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named("server"), self._name, key).add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path = self._folder / f"{len(list(self._folder.iterdir()))}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*form))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def write_certificate(folder: Path, name: str, password: bytes = b"") -> tuple[Path, Path]:
    """Write a self-signed certificate of 127.0.0.1 with a common name; return its file and its key file."""
    key = ec.generate_private_key(ec.SECP256R1())
    address = x509.SubjectAlternativeName([_general_name("127.0.0.1")])
    builder = _builder(_named(name), _named(name), key).add_extension(address, critical=False)
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    pem = serialization.Encoding.PEM
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption))
    return files


def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    day = timedelta(days=1)
    return x509.CertificateBuilder(
        issuer, name, key.public_key(), x509.random_serial_number(), now - day, now + day
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
