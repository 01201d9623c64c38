"""Set-up from nothing but Python and make: `python3 operator/tandem_local/setup/bootstrap.py [environment | tests | demo]`.

Starts before any package is there and, to be able to refuse it with a clear line, on a Python that is too old; so this file
keeps to plain syntax and imports the rest only once the version is known.
"""

import sys

OLDEST = (3, 11)
NEWEST = (3, 14)


def main(arguments: "list[str]") -> int:
    """Set up what the named purpose needs; returns the exit status."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        here = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"Python 3.11 to 3.14 is needed, this is {here}: run `make PYTHON=/path/to/python3.11 ...`")
    import pathlib  # noqa: PLC0415 - see above

    # The script's own folder would be first on the path; the folder of our packages takes its place.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2])
    from tandem_local.setup.main import main as set_up  # noqa: PLC0415 - see above

    return set_up(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
