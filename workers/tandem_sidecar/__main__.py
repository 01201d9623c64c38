"""Lets the container run `python -m tandem_sidecar`."""

import sys

from tandem_sidecar.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
