"""Kubeconfig files with everything embedded, so that one file can be copied, mounted or handed to another program."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tandem_local.certificates import KeyPair

__all__ = ["write_kubeconfig"]


def write_kubeconfig(path: Path, *, server: str, authority: Path, user: KeyPair, context: str) -> Path:
    """Write a kubeconfig for one user of one API server, readable by its owner only, and return its path."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority-data": _embed(authority)}}],
        "users": [
            {
                "name": context,
                "user": {
                    "client-certificate-data": _embed(user.certificate),
                    "client-key-data": _embed(user.key),
                },
            },
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _embed(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
