"""The service's token goes from its file into the engine's environment, and to the sidecar; never onto an argument line."""

from pathlib import Path

import pytest

from support.launcher import FakeImage, free_port
from tandem_launcher.drain import _headers
from tandem_launcher.failures import Failure, Reason
from tandem_launcher.token import read_token


def test_the_engine_asks_for_the_token_of_the_file(tmp_path: Path) -> None:
    image = FakeImage(tmp_path)
    image.add("tandem_simulator/__init__.py", "")
    image.add("tandem_simulator/__main__.py", "import os, sys\nprint(os.environ['VLLM_API_KEY'], 's3cret' in str(sys.argv))\n")
    (tmp_path / "token").write_text("s3cret\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    line = ["--model", str(model), "--host", "127.0.0.1", "--port", str(free_port())]
    given = ["run", "--engine", "simulator", "--gpus", "0", "--token-file", str(tmp_path / "token"), "--", *line]
    result = image.run(given, {"PHASE": "aggregated"})
    assert (result.code, result.stdout) == (0, "s3cret False\n"), result


@pytest.mark.parametrize("content", ["", None])
def test_without_a_token_the_worker_does_not_start(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(Failure) as failure:
        read_token(tmp_path / "token")
    assert failure.value.reason is Reason.NO_TOKEN


def test_the_hook_shows_the_token_to_the_sidecar(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert _headers(tmp_path / "token") == {"Authorization": "Bearer s3cret"}
    assert _headers(None) == {}
