"""Record what two real vLLM engines answer, for the contract tests of the simulator.

Start one engine with kv_role kv_producer and one with kv_consumer (NixlConnector, the same model, --max-model-len 2048,
--enable-prompt-tokens-details, --served-model-name as below), then:

    python tests/data/vllm/record.py --prefill http://127.0.0.1:8101 --decode http://127.0.0.1:8102

Writes one JSON file for each exchange beside this script, and the metric names of both engines. Only standard library,
so that it runs in the engines' own environment.
"""

import argparse
import http.client
import json
import re
import sys
import urllib.parse
from pathlib import Path
from typing import Any

MODEL = "smol"
LIMIT = 2048
"""The engines' --max-model-len."""

_HERE = Path(__file__).parent
_MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
_LONG = [{"role": "user", "content": "List three rivers of Europe and say one sentence about each. " * 6}]
_CHAT = {"model": MODEL, "messages": _MESSAGES, "max_tokens": 6, "temperature": 0}
_TEXT = {"model": MODEL, "prompt": "The capital of France is", "max_tokens": 6, "temperature": 0}
_PREFILL = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
_CHAT_PATH, _TEXT_PATH = "/v1/chat/completions", "/v1/completions"
_USAGE = {"stream": True, "stream_options": {"include_usage": True}}

Exchange = tuple[str, str, str, str, Any]
"""Name, engine, method, path, body. A body's `kv_transfer_params` may name the exchange whose answer's parameters it takes."""

EXCHANGES: tuple[Exchange, ...] = (
    ("health", "decode", "GET", "/health", None),
    ("version", "decode", "GET", "/version", None),
    ("models", "decode", "GET", "/v1/models", None),
    ("chat", "decode", "POST", _CHAT_PATH, _CHAT),
    ("chat-ids", "decode", "POST", _CHAT_PATH, {**_CHAT, "return_token_ids": True}),
    ("chat-stream", "decode", "POST", _CHAT_PATH, {**_CHAT, "stream": True}),
    ("chat-stream-usage", "decode", "POST", _CHAT_PATH, {**_CHAT, **_USAGE}),
    ("chat-stream-ids", "decode", "POST", _CHAT_PATH, {**_CHAT, **_USAGE, "return_token_ids": True}),
    (
        "chat-stream-continuous",
        "decode",
        "POST",
        _CHAT_PATH,
        {**_CHAT, "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    ),
    ("chat-choices", "decode", "POST", _CHAT_PATH, {**_CHAT, "n": 2, "temperature": 0.5, "seed": 1}),
    ("text", "decode", "POST", _TEXT_PATH, _TEXT),
    ("text-from-ids", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": [10, 20, 30, 40], "return_token_ids": True}),
    ("text-stream", "decode", "POST", _TEXT_PATH, {**_TEXT, "stream": True}),
    ("text-stream-ids", "decode", "POST", _TEXT_PATH, {**_TEXT, **_USAGE, "return_token_ids": True}),
    ("text-batch", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": ["One", "Two"]}),
    ("tokenize", "decode", "POST", "/tokenize", {"model": MODEL, "prompt": "Hello"}),
    ("tokenize-chat", "decode", "POST", "/tokenize", {"model": MODEL, "messages": _MESSAGES, "return_token_strs": True}),
    ("detokenize", "decode", "POST", "/detokenize", {"model": MODEL, "tokens": [10, 20]}),
    ("error-json", "decode", "POST", _CHAT_PATH, "{not json"),
    ("error-model", "decode", "POST", _CHAT_PATH, {**_CHAT, "model": "nobody"}),
    ("error-model-text", "decode", "POST", _TEXT_PATH, {**_TEXT, "model": "nobody"}),
    ("error-no-messages", "decode", "POST", _CHAT_PATH, {"model": MODEL}),
    ("error-type", "decode", "POST", _CHAT_PATH, {**_CHAT, "max_tokens": "many"}),
    ("error-temperature", "decode", "POST", _CHAT_PATH, {**_CHAT, "temperature": -1}),
    ("error-top-p", "decode", "POST", _CHAT_PATH, {**_CHAT, "top_p": 0}),
    ("error-no-tokens", "decode", "POST", _CHAT_PATH, {**_CHAT, "max_tokens": 0}),
    ("error-too-many-tokens", "decode", "POST", _CHAT_PATH, {**_CHAT, "max_tokens": LIMIT + 1}),
    ("error-min-tokens", "decode", "POST", _CHAT_PATH, {**_CHAT, "min_tokens": 7}),
    ("error-context", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": [10] * (LIMIT + 1)}),
    ("error-context-full", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": [10] * LIMIT}),
    ("error-vocabulary", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": [2**31 - 1]}),
    ("error-empty-prompt", "decode", "POST", _TEXT_PATH, {**_TEXT, "prompt": ""}),
    ("error-salt", "decode", "POST", _CHAT_PATH, {**_CHAT, "cache_salt": "a/b"}),
    ("error-stop", "decode", "POST", _CHAT_PATH, {**_CHAT, "stop": [""]}),
    ("error-choices", "decode", "POST", _CHAT_PATH, {**_CHAT, "n": 0}),
    ("error-stream-options", "decode", "POST", _CHAT_PATH, {**_CHAT, "stream_options": {"include_usage": True}}),
    ("error-path", "decode", "GET", "/v1/nothing", None),
    ("error-method", "decode", "GET", _CHAT_PATH, None),
    (
        "pd-prefill",
        "prefill",
        "POST",
        _CHAT_PATH,
        {
            **_CHAT,
            "messages": _LONG,
            "max_tokens": 1,
            "min_tokens": 1,
            "return_token_ids": True,
            "kv_transfer_params": _PREFILL,
        },
    ),
    ("pd-decode", "decode", "POST", _CHAT_PATH, {**_CHAT, "messages": _LONG, "kv_transfer_params": "pd-prefill"}),
    (
        "pd-prefill-again",
        "prefill",
        "POST",
        _TEXT_PATH,
        {**_TEXT, "prompt": "All rivers flow into the sea, they say. " * 6, "max_tokens": 1, "kv_transfer_params": _PREFILL},
    ),
    (
        "pd-decode-stream",
        "decode",
        "POST",
        _TEXT_PATH,
        {
            **_TEXT,
            **_USAGE,
            "prompt": "All rivers flow into the sea, they say. " * 6,
            "return_token_ids": True,
            "kv_transfer_params": "pd-prefill-again",
        },
    ),
    (
        "pd-decode-dead-peer",
        "decode",
        "POST",
        _CHAT_PATH,
        {**_CHAT, "messages": [{"role": "user", "content": "Dead. " * 30}], "kv_transfer_params": "dead"},
    ),
    (
        "pd-decode-dead-peer-stream",
        "decode",
        "POST",
        _CHAT_PATH,
        {**_CHAT, "stream": True, "messages": [{"role": "user", "content": "Gone. " * 30}], "kv_transfer_params": "dead"},
    ),
)


def dead_peer(params: dict[str, Any]) -> dict[str, Any]:
    """KV parameters of an engine that is not there."""
    return {**params, "remote_engine_id": "00000000-0000-4000-8000-000000000000", "remote_port": 1}


def main() -> int:
    """Record everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefill", required=True)
    parser.add_argument("--decode", required=True)
    options = parser.parse_args()
    bases = {"prefill": options.prefill, "decode": options.decode}
    version = json.loads(_send(options.decode, "GET", "/version", None)["body"])["version"]
    params: dict[str, dict[str, Any]] = {}
    for name, engine, method, path, body in EXCHANGES:
        response = _send(bases[engine], method, path, _resolve(body, params))
        _remember(name, response, params)
        record = {
            "vllm": version,
            "engine": engine,
            "request": {"method": method, "path": path, "body": body},
            "response": response,
        }
        (_HERE / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"{name}: {response['status']}\n")
    for engine, base in bases.items():
        record = {"vllm": version, "engine": engine, "metrics": _metrics(_send(base, "GET", "/metrics", None)["body"])}
        (_HERE / f"metrics-{engine}.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _resolve(body: Any, params: dict[str, dict[str, Any]]) -> Any:
    if not isinstance(body, dict) or not isinstance(body.get("kv_transfer_params"), str):
        return body
    return {**body, "kv_transfer_params": params[body["kv_transfer_params"]]}


def _remember(name: str, response: dict[str, Any], params: dict[str, dict[str, Any]]) -> None:
    if name.startswith("pd-prefill"):
        params[name] = json.loads(response["body"])["kv_transfer_params"]
        params["dead"] = dead_peer(params[name])


def _send(base: str, method: str, path: str, body: Any) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(base).netloc, timeout=300)
    data = body if isinstance(body, str) else None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": "application/json"} if data is not None else {})
    response = connection.getresponse()
    # Where the model lay on the recording machine is nobody's business.
    text = re.sub(r'"root":"[^"]*"', '"root":"model"', response.read().decode())
    connection.close()
    return {"status": response.status, "content_type": response.headers.get("Content-Type"), "body": text}


def _metrics(text: str) -> dict[str, dict[str, Any]]:
    """Kind and label names of each `vllm:` metric; samples under the names they are scraped by."""
    kinds = {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE vllm:")}
    samples: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("vllm:"):
            name, _, rest = line.partition("{")
            labels = {part.split("=")[0] for part in rest.rpartition("}")[0].split(",") if "=" in part}
            samples.setdefault(name.split()[0], set()).update(labels)
    return {"kinds": kinds, "samples": {name: sorted(labels) for name, labels in sorted(samples.items())}}


if __name__ == "__main__":
    sys.exit(main())
