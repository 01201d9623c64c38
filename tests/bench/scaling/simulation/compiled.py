"""How the simulator's core is compiled: by numba, once a machine, and anew whenever a line of the core changes.

numba looks only at the file of a function when it asks whether what it kept is still right, and not at the files of what
that function calls. So what is kept is kept under a digest of all of the core's files.
"""

import hashlib
from pathlib import Path

import numba

__all__ = ["compiled"]

_FOLDER = Path(__file__).parent


def _digest() -> str:
    files = sorted(_FOLDER.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


numba.config.CACHE_DIR = str(_FOLDER / "__pycache__" / f"numba-{_digest()}")
# The core makes no array, so nobody has to count who still uses one (`_nrt`): that takes more than half of its time else.
compiled = numba.njit(cache=True, error_model="numpy", _nrt=False)
"""Compiles a function of the core; it may use arrays, records and numbers, and divides by nothing that may be 0."""
