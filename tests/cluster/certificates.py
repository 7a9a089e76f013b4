"""Certificates and keys of one control plane, valid for a day and for 127.0.0.1."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """Files in PEM."""

    authority: Path
    server: Path
    server_key: Path
    accounts_key: Path
    """Signs the tokens of ServiceAccounts."""

    @classmethod
    def made(cls, folder: Path) -> Certificates:
        """New ones, in a new `folder`."""
        folder.mkdir(mode=0o700)
        files = cls(*(folder / name for name in ("ca.pem", "server.pem", "server.key", "accounts.key")))
        issuing, serving = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests of Modelyard")])
        authority = (
            _begun(issuer, issuer, issuing.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=True,
                    crl_sign=True,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(issuing.public_key()), critical=False)
            .sign(issuing, hashes.SHA256())
        )
        named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        server = (
            _begun(named, issuer, serving.public_key())
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
            )
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing.public_key()), critical=False
            )
            .sign(issuing, hashes.SHA256())
        )
        files.authority.write_bytes(authority.public_bytes(Encoding.PEM))
        files.server.write_bytes(server.public_bytes(Encoding.PEM))
        for path, key in (
            (files.server_key, serving),
            (files.accounts_key, rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        ):
            path.touch(mode=0o600)
            path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )
