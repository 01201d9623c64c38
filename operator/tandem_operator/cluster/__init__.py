"""Everything that touches the network: the API server, and the routers' admin ports.

Objects are plain JSON trees. Errors of the client library never leave this package; callers see those of `errors`.
"""
