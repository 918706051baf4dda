"""An authority of one's own, and what a server on loopback proves itself with."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The authority's certificate as a file in the folder, and what a server at 127.0.0.1 is started with."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
    root = _certificate(name, name, key.public_key()).add_extension(x509.BasicConstraints(True, None), critical=True)
    own = ec.generate_private_key(ec.SECP256R1())
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = _certificate(_name("server"), name, own.public_key()).add_extension(host, critical=False)
    file, chain = folder / "authority.pem", folder / "server.pem"
    file.write_bytes(root.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    secret = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain.write_bytes(leaf.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return file, context


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
