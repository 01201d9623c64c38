"""The `tandem` command: checks manifests, generates from the models, runs the local cluster and the demonstration.

Each command is a module with `add_commands(subparsers)`; `main` knows which module has which command and loads no other.
"""
