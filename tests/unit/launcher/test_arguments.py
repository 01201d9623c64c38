"""The argument line is read as the engine reads it, as far as the checks need it."""

import pytest

from tandem_launcher.arguments import Transfer, read_flags, read_tokens, read_transfer
from tandem_launcher.failures import Failure


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        (["--model", "/m", "--port=8000"], {"model": "/m", "port": "8000"}),
        (["--max_model_len", "32k"], {"max-model-len": "32k"}),
        (["--enforce-eager", "--dtype", "half"], {"enforce-eager": "", "dtype": "half"}),
        (["--seed", "-1"], {"seed": "-1"}),
        (["--port", "1", "--port", "2"], {"port": "2"}),
        (["--kv-transfer-config", '{"a": "b=c"}'], {"kv-transfer-config": '{"a": "b=c"}'}),
        (["--headless"], {"headless": ""}),
    ],
)
def test_flags_are_read_in_every_spelling(line: list[str], flags: dict[str, str]) -> None:
    assert read_flags(line) == flags


@pytest.mark.parametrize(
    ("text", "tokens"), [("4096", 4096), ("32k", 32_000), ("32K", 32_768), ("auto", None), ("-1", None), ("1.5k", None)]
)
def test_a_number_of_tokens_is_read_with_its_unit_or_left_to_the_engine(text: str, tokens: int | None) -> None:
    assert read_tokens({"max-model-len": text}, "max-model-len") == tokens


def test_a_transfer_configuration_names_connector_and_role() -> None:
    flags = {"kv-transfer-config": '{"kv_connector": "NixlConnector", "kv_role": "kv_producer"}'}
    transfer = read_transfer(flags)
    assert transfer == Transfer(connector="NixlConnector", role="kv_producer")
    assert transfer.nixl


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}", '{"kv_connector": "NixlConnector"}'])
def test_a_transfer_configuration_that_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="must be a JSON object with kv_connector and kv_role"):
        read_transfer({"kv-transfer-config": text})
