"""How many clients may be connected: each open stream takes two open files of the process, and files are bounded.

Beyond the bound the system refuses at random: a client is reset, an engine cannot be connected to, the workers cannot
be read. So the router refuses first, and says why.
"""

import resource

__all__ = ["most_clients", "raise_limit"]

SPARE = 1024
"""Files for everything but clients and the engines that serve them: idle connections to engines, the API server, peers,
sidecars, probes. Where few files are allowed it is an eighth of them."""
UNBOUNDED = 1 << 20


def raise_limit() -> int:
    """Open as many files as allowed, where container runtimes begin with 1,024; return how many that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = UNBOUNDED if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files


def most_clients(files: int) -> int:
    """Connections of clients that so many open files allow."""
    return (files - min(SPARE, files // 8)) // 2
