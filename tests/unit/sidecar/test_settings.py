"""The command line is checked whole before anything starts."""

import pytest

from tandem_api.names import Role
from tandem_sidecar.settings import read_settings

LINE = ["--role", "decode", "--kv-group", "g1", "--engine", "VLLM", "--engine-url", "http://127.0.0.1:8000/", "--lease", "30s"]


def test_the_containers_command_line_is_read() -> None:
    settings = read_settings([*LINE, "--port", "8100", "--drain", "2m"], {"POD_NAME": "chat-decode-worker-1"})
    assert (settings.role, settings.kv_group, settings.pod) == (Role.DECODE, "g1", "chat-decode-worker-1")
    assert (settings.engine_url, settings.port) == ("http://127.0.0.1:8000", 8100)
    assert (settings.lease, settings.drain) == (30.0, 120.0)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--role", "router"], "invalid Role value"),
        (["--engine", "SGLang"], "invalid choice: 'SGLang'"),
        (["--lease", "30"], "'30' is not a duration"),
        (["--engine-url", "ftp://127.0.0.1"], "is no http://host:port"),
        (["--engine-url", "http://127.0.0.1:8000/v1"], "is no http://host:port"),
        (["--peer", "x"], "unrecognized arguments: --peer x"),
        (["--peers", "x"], "--peers needs an --engine-line that names the model"),
        (["--engine-line", "--model m"], "not JSON"),
        (["--engine-line", "[1]"], "must be a JSON list of strings"),
    ],
)
def test_a_bad_command_line_says_what_is_wrong(extra: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings([*LINE, *extra], {})
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
