"""Offline validation of manifests with the same verdicts as the API server's.

The order is the API server's: decode strictly, drop nulls, apply defaults, check the schema, evaluate the CRD's own CEL. Then
follows what the operator says itself. No network, no cluster; the CRD is made from the same models as the installed one.
"""
