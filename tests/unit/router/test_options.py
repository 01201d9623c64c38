"""Flags: the operator's command line is understood, and a wrong one ends with the reason."""

import pytest

from tandem_router.options import OnPrefillFailure, parse

FULL = (
    "--service chat --namespace ns --model m --port 8080 --admin-port 8081 --min-prompt-tokens 256 "
    "--on-prefill-failure FallbackLocal --slo-ttft 500ms --slo-ttft-per-thousand 80ms --slo-tpot 50ms --drain 120s"
)


def test_the_operators_command_line_is_understood():
    options = parse(FULL.split())
    assert (options.service, options.namespace, options.model) == ("chat", "ns", "m")
    assert (options.port, options.admin_port, options.min_prompt_tokens) == (8080, 8081, 256)
    assert options.on_prefill_failure is OnPrefillFailure.FALLBACK_LOCAL
    assert (options.slo_ttft, options.slo_ttft_per_thousand, options.slo_tpot, options.drain) == (0.5, 0.08, 0.05, 120)
    assert options.workers_file is None
    assert options.trace_endpoint is None
    traced = parse([*FULL.split(), "--trace-endpoint", "https://[::1]:4318/otlp", "--trace-percent", "5"])
    assert (traced.trace_endpoint, traced.trace_percent) == ("https://[::1]:4318/otlp", 5)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("--slo-ttft 5", "not a duration"),
        ("--on-prefill-failure Hope", "invalid"),
        ("--max-body-bytes 0", "at least 1"),
        ("--nope", "--nope"),
        ("--trace-percent 101", "invalid"),
        ("--trace-endpoint collector:4318", "not an http or https address"),
        ("--trace-endpoint http://", "not an http or https address"),
        ("--trace-endpoint http://collector:99999", "invalid"),
        ("--trace-endpoint http://me:secret@collector", "no credentials"),
        ("--trace-endpoint http://collector?key=secret", "no credentials"),
    ],
)
def test_a_wrong_flag_ends_with_its_reason(wrong, reason, capsys):
    with pytest.raises(SystemExit):
        parse([*FULL.split(), *wrong.split()])
    assert reason in capsys.readouterr().err
