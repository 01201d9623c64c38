"""HTTPS of the public port. A new certificate serves new connections; those that are open keep theirs."""

import ssl
from pathlib import Path

__all__ = ["Certificates"]

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Names that Kubernetes gives the entries of a TLS Secret."""


class Certificates:
    """A server context whose certificate can change while it serves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.context = _context()

    def load(self) -> None:
        """Read certificate and key anew; a pair that does not belong together changes nothing.

        Raises:
            OSError: a file cannot be read.
            ValueError: they are no certificate and key that belong together.
        """
        files = str(self._folder / CERTIFICATE), str(self._folder / KEY)
        try:
            _context().load_cert_chain(*files, password=_no_password)
            self.context.load_cert_chain(*files, password=_no_password)
        except ssl.SSLError as error:
            raise ValueError(
                f"{CERTIFICATE} and {KEY} in {self._folder} are no certificate and key in PEM form that belong together "
                f"({error.reason or 'unreadable'})"
            ) from error


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Without this an encrypted key would make OpenSSL ask on a terminal."""
    raise ValueError(f"{KEY} is encrypted; the router takes a key without a password")
