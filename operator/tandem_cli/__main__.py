"""`python -m tandem_cli`, for an installation whose scripts are not on the path."""

import sys

from tandem_cli.main import main

__all__: list[str] = []

sys.exit(main())
