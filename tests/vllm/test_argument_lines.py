"""Every argument line that the operator renders for the samples is one that vLLM's own parser takes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from support import specs
from tandem_api.inferenceservice import EngineType
from tandem_operator.policies import roles
from tandem_operator.render.arguments import engine_arguments

_SAMPLES = sorted((Path(__file__).parents[2] / "crds" / "samples").glob("*.yaml"))
_PARSE = """
import json, sys
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

class Parser(FlexibleArgumentParser):
    def error(self, message):
        raise ValueError(message)

parser = make_arg_parser(Parser())
verdicts = {}
for name, line in json.load(sys.stdin).items():
    try:
        given = parser.parse_args(line)
        validate_parsed_serve_args(given)
        AsyncEngineArgs.from_cli_args(given)
        verdicts[name] = "taken"
    except (ValueError, TypeError) as error:
        verdicts[name] = f"{type(error).__name__}: {error}"
print("VERDICTS", json.dumps(verdicts))
"""


def _lines() -> dict[str, list[str]]:
    """Argument lines as the container gets them, by sample and role."""
    found = {}
    for file in _SAMPLES:
        for document in yaml.safe_load_all(file.read_text()):
            spec = specs.read(document["spec"])
            if spec.engine.type is EngineType.VLLM:
                for role in roles.roles(spec):
                    line = [argument.replace("$$", "$") for argument in engine_arguments(spec, role)]
                    found[f"{file.stem} {role.value}"] = line
    return found


def _verdicts(python: Path, lines: dict[str, list[str]]) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-c", _PARSE], input=json.dumps(lines), capture_output=True, text=True, check=False, timeout=300
    )
    told = [line.removeprefix("VERDICTS ") for line in done.stdout.splitlines() if line.startswith("VERDICTS ")]
    assert told, done.stderr
    verdicts: dict[str, Any] = json.loads(told[-1])
    return verdicts


def test_vllm_takes_the_argument_lines_of_all_samples(engine_python: Path) -> None:
    lines = _lines()
    control = {"control": ["--no-such-flag"]}

    verdicts = _verdicts(engine_python, lines | control)

    assert verdicts.pop("control").startswith("ValueError: ")
    assert verdicts == dict.fromkeys(lines, "taken")
    assert len(lines) >= 2 * len(_SAMPLES) - 2
