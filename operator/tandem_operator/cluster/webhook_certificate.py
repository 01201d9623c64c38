"""The certificate of the admission webhook: made by the first operator, kept in one Secret, trusted by the API server.

The operator may make that Secret and not read it: the kubelet mounts it. Its authority signs this one certificate; the
authority's key is never kept, so that nobody can sign another. Whoever fills the Secret in its place (cert-manager does)
may renew it at any time: what is mounted is what counts.
"""

import base64
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tandem_operator.cluster.access import Access
from tandem_operator.cluster.secrets import mounted_or_made

__all__ = ["Certificate", "CertificatePlace", "make", "mounted", "serving_certificate"]

_VALID = dt.timedelta(days=3650)
_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate, its key, and the authority that vouches for it; PEM each."""

    chain: bytes
    key: bytes
    authority: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatePlace:
    """Where the certificate is kept: a Secret, and the folder as which it is mounted; `host` is what it is for."""

    namespace: str
    secret: str
    folder: Path
    host: str


async def serving_certificate(access: Access, place: CertificatePlace, *, waiting: Callable[[str], None]) -> Certificate:
    """Return the certificate; make it if there is none. `waiting` is told why it takes longer."""
    return await mounted_or_made(
        access,
        "the webhook's certificate",
        mounted=lambda: mounted(place.folder),
        make=lambda: make(place.host, now=dt.datetime.now(dt.UTC)),
        tree=lambda made: _tree(place, made),
        waiting=waiting,
    )


def mounted(folder: Path) -> Certificate | None:
    """Return the certificate that a folder holds; None if there is none.

    Raises:
        OSError: it cannot be read, or not all of it is there.
    """
    if not (folder / "tls.crt").exists():
        return None
    return Certificate(*((folder / name).read_bytes() for name in ("tls.crt", "tls.key", "ca.crt")))


def make(host: str, *, now: dt.datetime) -> Certificate:
    """Return a new certificate for a DNS name, and a new authority that signed it and nothing else."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _name("tandem-webhook-authority")
    root = _builder(authority, authority, authority_key, now)
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    leaf = _builder(_name("tandem-webhook"), authority, key, now)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    signed = [builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) for builder in (leaf, root)]
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(signed[0], private, signed[1])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _tree(place: CertificatePlace, made: Certificate) -> dict[str, Any]:
    data = {"tls.crt": made.chain, "tls.key": made.key, "ca.crt": made.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": place.secret, "namespace": place.namespace},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
