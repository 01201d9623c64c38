"""The entry point of a worker's engine container.

An init container copies this package as one zipapp file into engine images that know nothing of Tandem. It checks what
can be known before a model is loaded, then becomes the engine. It runs in foreign images, so it imports the standard
library, torch and the engine, nothing else: not even the project's own contract.
"""
