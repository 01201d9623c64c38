"""Lets `python -m tandem_launcher` run the same command line as the zipapp."""

import sys

from tandem_launcher.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
