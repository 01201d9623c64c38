"""`python -m tandem_router`: the router as a program."""

import sys

import uvloop

from tandem_router.app import run
from tandem_router.logs import configure
from tandem_router.options import parse


def main() -> None:
    """Run the router with the flags of the command line."""
    options = parse(sys.argv[1:])
    configure(service=options.service, namespace=options.namespace)
    try:
        uvloop.run(run(options))
    except (OSError, ValueError) as error:
        sys.exit(f"tandem_router: {error}")


if __name__ == "__main__":
    main()
