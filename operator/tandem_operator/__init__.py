"""The operator of Tandem: desired state only, never in the path of a request.

`handlers` knows kopf, `reconcile` is the level-based pass, `render` and `policies` are pure, `cluster` talks to the API
server, `queue` decides when a key is worked on. A layer imports only what stands below it.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
