"""`python -m tandem_router`: the router as a program."""

import gc
import sys

import uvloop

from tandem_router.app import run
from tandem_router.options import parse
from tandem_router.reporting.logs import configure

GARBAGE = (20_000, 20, 50)
"""Thresholds of the garbage collector: a request leaves few cycles, and by default looking for them is 8 % of the work."""


def main() -> None:
    """Run the router with the flags of the command line."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    options = parse(sys.argv[1:])
    configure(service=options.service, namespace=options.namespace)
    try:
        uvloop.run(run(options))
    except (OSError, ValueError) as error:
        sys.exit(f"tandem_router: {error}")


if __name__ == "__main__":
    main()
