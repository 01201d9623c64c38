"""Certificates of one local cluster: a private authority that lives in the cluster's folder and dies with it.

Keys never leave that folder and are readable by their owner only. Nothing here is fit for a cluster that others use.
"""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "KeyPair", "write_signing_key"]

_VALID = dt.timedelta(days=365)
_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of one certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates into one folder; the authority's own key is kept in memory only."""

    def __init__(self, folder: Path, *, now: dt.datetime) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tandem-local", ())
        self.certificate = folder / "ca.crt"
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        _write(self.certificate, builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, file: str, organizations: Iterable[str] = (), hosts: Iterable[str] = ()) -> KeyPair:
        """Write `<file>.crt` and `<file>.key` for a user (`name`, its groups) that is also a server for `hosts`.

        `hosts` are DNS names or IP addresses in text.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = self._builder(_name(name, organizations), key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        _write(pair.certificate, builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        _write(pair.key, _private_pem(key))
        return pair

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + _VALID)
        )


def write_signing_key(folder: Path) -> KeyPair:
    """Write the key pair that signs ServiceAccount tokens: `certificate` is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / "service-accounts.pub", folder / "service-accounts.key")
    _write(pair.key, _private_pem(key))
    public = key.public_key()
    _write(
        pair.certificate,
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    return pair


def _name(common: str, organizations: Iterable[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _write(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
