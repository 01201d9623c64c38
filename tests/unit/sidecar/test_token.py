"""The sidecar's port asks for the service's token, except of probes."""

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tandem_sidecar.settings import read_settings
from tandem_sidecar.token import guarded

LINE = ["--role", "decode", "--kv-group", "g", "--engine", "VLLM", "--engine-url", "http://127.0.0.1:1", "--lease", "1s"]


@pytest.mark.parametrize(
    ("shown", "status"), [("", 401), ("Bearer other", 401), ("Bearer s3cret", 200), ("Bearer s\xe9cret", 401)]
)
async def test_whoever_shows_no_token_is_told_nothing(shown: str, status: int) -> None:
    async def told(_: web.Request) -> web.Response:
        return web.Response(text="told")

    app = web.Application(middlewares=guarded("s3cret"))
    app.add_routes([web.get(path, told) for path in ("/state", "/healthz", "/readyz")])
    server = TestServer(app)
    await server.start_server()
    async with aiohttp.ClientSession(headers={"Authorization": shown} if shown else {}) as session:
        for path, wanted in (("/state", status), ("/healthz", 200), ("/readyz", 200)):
            async with session.get(server.make_url(path)) as answer:
                assert answer.status == wanted
    await server.close()


def test_the_token_is_read_from_its_file(tmp_path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert read_settings([*LINE, "--token-file", str(tmp_path / "token")]).token == "s3cret"  # noqa: S105 - no secret of anybody
    assert read_settings(LINE).token is None


@pytest.mark.parametrize("content", ["", None])
def test_a_token_file_that_holds_none_stops_the_sidecar(
    tmp_path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(SystemExit):
        read_settings([*LINE, "--token-file", str(tmp_path / "token")])
    assert "token" in capsys.readouterr().err
