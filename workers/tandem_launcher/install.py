"""Writes the launcher as one file that any Python 3 of an engine image can run.

The same sources give the same bytes: entries are sorted, uncompressed (zlib's output differs between releases) and carry
one fixed date. The file appears whole or not at all.
"""

import os
import tempfile
import zipfile
from pathlib import Path
from typing import IO

__all__ = ["FILE_NAME", "archive", "install"]

FILE_NAME = "launcher.pyz"
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644
_MAIN = b"import sys\n\nfrom tandem_launcher.cli import main\n\nsys.exit(main(sys.argv[1:]))\n"


def install(target: Path) -> Path:
    """Write `launcher.pyz` into an existing folder, readable by every user, and return its path.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=target, prefix=f".{FILE_NAME}.")
    try:
        with os.fdopen(handle, "wb") as file:
            archive(Path(__file__).parent, file)
            os.fchmod(file.fileno(), _MODE)
        return Path(temporary).replace(target / FILE_NAME)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def archive(package: Path, file: IO[bytes]) -> None:
    """Write the modules of a package folder, and an entry point, to a binary file as a zip archive."""
    contents = {f"{package.name}/{path.name}": path.read_bytes() for path in package.glob("*.py")}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as bundle:
        for name, content in sorted({**contents, "__main__.py": _MAIN}.items()):
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.external_attr = _MODE << 16
            bundle.writestr(entry, content)
