"""Everything that must be on a machine before the local cluster, the demo and the tests can run, and how it gets there.

Runs before any package is installed: the standard library only, besides what `tandem_local` itself has without packages.
It prepares and checks; it never starts a cluster.
"""
