"""`python -m tandem_simulator`: takes the same argument line as `python -m vllm.entrypoints.openai.api_server`."""

import sys

from tandem_simulator.engine.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
