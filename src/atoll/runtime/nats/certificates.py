"""The hub's certificates: its own authority, and what it signs.

Parties pin the authority, not the certificate: the hub may renew its certificate, or change its names,
without anybody joining again.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from atoll.errors import ParameterError
from atoll.runtime.result import write_whole

AUTHORITY_DAYS: Final = 20 * 365
SERVER_DAYS: Final = 365
RENEW_DAYS: Final = 60
"""A certificate is renewed when it has less than this left."""

_BEFORE: Final = datetime.timedelta(hours=1)  # clocks differ


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def now() -> datetime.datetime:
    """The time, as certificates have it."""
    return datetime.datetime.now(datetime.UTC)


def new_authority(name: str) -> Pair:
    """A certificate authority that signs for one hub and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"Atoll hub {name}"[:64])
    builder = (
        _builder(subject, subject, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def new_server(authority: Pair, names: Iterable[str], days: int = SERVER_DAYS) -> Pair:
    """A certificate for the hub's server under its authority, for host names and addresses."""
    names = list(names)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    alternatives = x509.SubjectAlternativeName([_alternative(one) for one in names])
    builder = (
        _builder(_name(names[0][:64]), issuer.subject, key.public_key(), days)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    made = _pair(builder.sign(signer, hashes.SHA256()), key)
    # The authority goes along: whoever was invited knows its fingerprint, and takes it from here.
    return Pair(made.certificate + authority.certificate, made.key)


def days_left(certificate: bytes) -> float:
    """How many days the first certificate of a PEM chain is still valid; negative when it is not."""
    try:
        until = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        raise ParameterError("the certificate is not a PEM file") from None
    return (until - now()).total_seconds() / 86400


def fingerprint(authority: bytes) -> str:
    """SHA-256 of an authority's certificate (PEM), in hexadecimal digits: what invitations carry."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(authority.decode())).hexdigest()


def write_pair(pair: Pair, certificate: Path, key: Path) -> None:
    """Key first and readable by its owner only: a certificate without its key stops a server."""
    write_whole(key, pair.key)
    key.chmod(0o600)
    write_whole(certificate, pair.certificate)


def read_pair(certificate: Path, key: Path) -> Pair:
    """A certificate and a key that belong together."""
    try:
        pair = Pair(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise ParameterError(f"cannot read {error.filename}: {error.strerror}") from None
    try:
        leaf = x509.load_pem_x509_certificate(pair.certificate)
        private = serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError):
        raise ParameterError(
            f"{certificate} and {key} must be PEM files, the key without a passphrase"
        ) from None
    if private.public_key() != leaf.public_key():
        raise ParameterError(f"{key} is not the key of {certificate}")
    return pair


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    made = now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(made - _BEFORE)
        .not_valid_after(made + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
