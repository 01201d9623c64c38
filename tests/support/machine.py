"""A machine on which everything can run, once set-up has made it; tests change what they are about."""

from tandem_local.setup.doctor import GIB, Facts

__all__ = ["FIT"]

FIT = Facts(
    platform="linux",
    machine="x86_64",
    python=(3, 11),
    glibc=(2, 36),
    root=True,
    can_install=True,
    namespaces="",
    overlay="",
    network="",
    missing_programs=(),
    nft="",
    loopback="",
    cache="/cache",
    cache_writable="",
    memory=32 * GIB,
    disk=100 * GIB,
    go="/usr/bin/go",
    control_plane_ready=False,
    engine_ready=False,
)
