"""The edge: kopf's watches, probes, metrics, and the wiring of everything below. The only place that knows kopf."""
