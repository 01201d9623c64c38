"""Traces of requests: the client's context passed on to the engines, and spans where an endpoint is configured."""
