"""`tandem demo`: one InferenceService on a real local Kubernetes, asked, measured and taken down again.

It does what a user does, with the chart, kubectl and the router's public address; nothing here is a shortcut past them.
"""
