"""A real OpenLDAP server on loopback: people, groups, and a certificate of its own."""

import datetime
import ipaddress
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ldap
import ldap.modlist
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.daemons.daemon import await_port, free_port

BASE = "dc=example,dc=org"
ROOT = f"cn=root,{BASE}"
ROOT_PASSWORD = "root secret"
APP = f"cn=gateway,{BASE}"
APP_PASSWORD = "application secret"
PEOPLE = f"ou=people,{BASE}"
STAFF = f"ou=staff,{BASE}"
GROUPS = f"ou=groups,{BASE}"
PASSWORD = "ada's own secret"
SCHEMAS = Path("/etc/ldap/schema")

CONFIG = """
{includes}
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
TLSCACertificateFile {folder}/ca.pem
security simple_bind=128
database mdb
suffix "{base}"
rootdn "{root}"
rootpw "{password}"
directory {folder}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{app}" read by * none
"""


@dataclass(frozen=True)
class Slapd:
    """A running server; binds need TLS."""

    folder: Path
    port: int
    ldaps_port: int

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    @contextmanager
    def administered(self) -> Iterator[ldap.ldapobject.LDAPObject]:
        """Yield a connection that may change everything."""
        connection = ldap.initialize(f"ldap://127.0.0.1:{self.port}")
        connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(self.ca_file))
        connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
        connection.start_tls_s()
        connection.simple_bind_s(ROOT, ROOT_PASSWORD)
        try:
            yield connection
        finally:
            connection.unbind_s()

    def add(self, dn: str, **attributes: list[str]) -> None:
        """Add an entry."""
        values = {name: [value.encode() for value in found] for name, found in attributes.items()}
        with self.administered() as connection:
            connection.add_s(dn, ldap.modlist.addModlist(values))

    def add_person(self, name: str, parent: str = PEOPLE, password: str = PASSWORD, **more: list[str]) -> str:
        """Add a person and return the DN."""
        dn = f"cn={name},{parent}"
        attributes = {
            "objectClass": ["inetOrgPerson"],
            "uid": [name],
            "cn": [name],
            "sn": ["x"],
            "mail": [f"{name}@example.org"],
            "userPassword": [password],
        }
        self.add(dn, **(attributes | more))
        return dn

    def move(self, dn: str, cn: str) -> None:
        """Give an entry another DN."""
        with self.administered() as connection:
            connection.rename_s(dn, f"cn={cn}", delold=1)


def find_slapd() -> str | None:
    """Return the path of the server, None if it is not installed."""
    return shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def running_slapd(folder: Path, program: str) -> Iterator[Slapd]:
    """Run a server with a person, an application and a group."""
    folder.mkdir(exist_ok=True)
    (folder / "data").mkdir()
    write_certificates(folder)
    schemas = ("core", "cosine", "inetorgperson")
    text = CONFIG.format(
        includes="\n".join(f"include {SCHEMAS / name}.schema" for name in schemas),
        folder=folder,
        base=BASE,
        root=ROOT,
        password=ROOT_PASSWORD,
        app=APP,
    )
    (folder / "slapd.conf").write_text(text)
    port, ldaps_port = free_port(), free_port()
    # 127.0.0.2 is not in the certificate.
    addresses = f"ldap://127.0.0.1:{port} ldap://127.0.0.2:{port} ldaps://127.0.0.1:{ldaps_port}"
    arguments = [program, "-f", str(folder / "slapd.conf"), "-h", addresses, "-d", "0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        server = Slapd(folder, port, ldaps_port)
        await_port(process, port, folder / "log")
        fill(server)
        yield server
    finally:
        process.terminate()
        process.wait(10)


def fill(server: Slapd) -> None:
    """Add what every test finds."""
    server.add(BASE, objectClass=["dcObject", "organization"], dc=["example"], o=["Example"])
    for dn in (PEOPLE, STAFF, GROUPS):
        server.add(dn, objectClass=["organizationalUnit"], ou=[dn.partition("=")[2].partition(",")[0]])
    secret = [APP_PASSWORD]
    server.add(
        APP, objectClass=["person", "simpleSecurityObject"], cn=["gateway"], sn=["x"], userPassword=secret
    )
    ada = server.add_person("ada", displayName=["Ada Löve"])
    server.add(f"cn=research\\, theory,{GROUPS}", objectClass=["groupOfNames"], member=[ada])
    server.add(f"cn=staff,{GROUPS}", objectClass=["groupOfNames"], member=[ada])


def write_certificates(folder: Path) -> None:
    """Write `ca.pem`, `server.pem` and `server.key` for 127.0.0.1, and `other.pem` of another authority."""
    ca_key, ca = make_certificate("Test authority")
    _, other = make_certificate("Other authority")
    key, certificate = make_certificate("127.0.0.1", (ca_key, ca))
    for name, found in (("ca", ca), ("other", other), ("server", certificate)):
        (folder / f"{name}.pem").write_bytes(found.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.key").write_bytes(private)


def make_certificate(
    name: str, authority: tuple[ec.EllipticCurvePrivateKey, x509.Certificate] | None = None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """Return a key and a certificate: of an authority, or of a server that an authority signs."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority[1].subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
    )
    if authority is not None:
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return key, builder.sign(authority[0] if authority else key, hashes.SHA256())
