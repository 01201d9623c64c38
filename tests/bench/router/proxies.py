"""The proxies that are compared, each as its users would run it, and how one is started and found ready."""

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Protocol

from bench.router.processes import Cores, start, stop

__all__ = ["DIRECT", "PROXIES", "Bench", "Running", "free_port", "running"]

DIRECT = "direct"
_PATIENCE = 90.0
_ENVOY_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
_HERE = Path(__file__).resolve().parent
_REPOSITORY = _HERE.parents[2]


@dataclass(frozen=True, slots=True)
class Bench:
    """What every proxy is started with: addresses of the engines, programs of the rivals, a scratch folder, cores."""

    prefill: str
    decode: str
    rivals: Path
    scratch: Path
    cores: Cores
    key: str
    """API key that clients show; only this router checks it, the others pass it on."""


@dataclass(frozen=True, slots=True)
class Running:
    """A proxy that serves; `pid` is None for the direct connection, which has no process of its own."""

    name: str
    address: str
    pid: int | None
    tls: bool = False


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _no_tls(name: str, *, tls: bool) -> None:
    if tls:
        raise ValueError(f"{name} is not measured with TLS")


def _tandem(bench: Bench, port: int, *, tls: bool) -> list[str]:
    workers = bench.scratch / f"workers-{port}.json"
    report = [
        {"pod": role, "address": address, "role": role, "kv_group": "g", "ready": True, "terminating": False}
        for role, address in (("prefill", bench.prefill), ("decode", bench.decode))
    ]
    workers.write_text(json.dumps(report))
    keys = bench.scratch / "keys"
    keys.write_text(f"{bench.key}\n")
    named = ["--service", "bench", "--namespace", "bench", "--model", "m", "--workers-file", str(workers)]
    placed = ["--host", "127.0.0.1", "--port", str(port), "--admin-port", str(free_port())]
    guarded = ["--api-keys", str(keys), *(["--tls", str(bench.scratch / "tls")] if tls else [])]
    # By default 512 requests may wait for a worker; ten thousand that arrive together are no overload here.
    return [sys.executable, "-m", "tandem_router", *named, *placed, *guarded, "--max-queue", "16384"]


def _splice(bench: Bench, port: int, *, tls: bool) -> list[str]:
    _no_tls("splice", tls=tls)
    return [sys.executable, str(_HERE / "splice.py"), str(port), bench.prefill, bench.decode]


def _vllm_router(bench: Bench, port: int, *, tls: bool) -> list[str]:
    _no_tls("vllm_router", tls=tls)
    legs = ["--vllm-pd-disaggregation", "--prefill", f"http://{bench.prefill}", "--decode", f"http://{bench.decode}"]
    placed = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    kind = ["--kv-connector", "nixl", "--policy", "round_robin", "--max-concurrent-requests", "16384", "--log-level", "error"]
    return [str(bench.rivals / "vllm-router"), *legs, *placed, *kind]


def _envoy(bench: Bench, port: int, *, tls: bool) -> list[str]:
    host, _, engine = bench.decode.rpartition(":")
    config = bench.scratch / f"envoy-{port}.json"
    config.write_text(json.dumps(_envoy_config(port, host, int(engine), certificate=bench.scratch / "tls" if tls else None)))
    return [str(bench.rivals / "envoy"), "-c", str(config), "--concurrency", "1", "-l", "error", "--disable-hot-restart"]


def _envoy_config(port: int, host: str, engine: int, *, certificate: Path | None) -> dict[str, object]:
    filters = "type.googleapis.com/envoy.extensions.filters"
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engine", "timeout": "0s"}}
    manager = {
        "@type": f"{filters}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": f"{filters}.http.router.v3.Router"}}],
    }
    chain: dict[str, object] = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    if certificate is not None:
        pair = {"certificate_chain": "tls.crt", "private_key": "tls.key"}
        files = {name: {"filename": str(certificate / file)} for name, file in pair.items()}
        context = {"@type": _ENVOY_TLS, "common_tls_context": {"tls_certificates": [files]}}
        chain["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    endpoint = {"endpoint": {"address": {"socket_address": {"address": host, "port_value": engine}}}}
    # Its default of 1,024 connections and requests would refuse what the benchmark opens.
    unbounded = {"max_connections": 65536, "max_pending_requests": 65536, "max_requests": 65536}
    cluster = {
        "name": "engine",
        "type": "STATIC",
        "connect_timeout": "1s",
        "circuit_breakers": {"thresholds": [unbounded]},
        "load_assignment": {"cluster_name": "engine", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [chain],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


class _Command(Protocol):
    def __call__(self, bench: Bench, port: int, *, tls: bool) -> list[str]: ...


PROXIES: dict[str, _Command] = {
    "tandem": _tandem,
    "splice": _splice,
    "vllm_router": _vllm_router,
    "envoy": _envoy,
}
"""Commands by name, in the order in which they take turns."""


@contextmanager
def running(name: str, bench: Bench, *, tls: bool = False) -> Iterator[Running]:
    """A proxy that answers inside the block.

    Raises:
        RuntimeError: it did not come up; the message names its log.
    """
    if name == DIRECT:
        yield Running(DIRECT, bench.decode, None)
        return
    port = free_port()
    log = bench.scratch / f"{name}.log"
    paths = {"PYTHONPATH": ":".join(str(_REPOSITORY / folder) for folder in ("crds", "workers"))}
    process = start(PROXIES[name](bench, port, tls=tls), cores=bench.cores.proxy, log=log, environ=paths)
    found = Running(name, f"127.0.0.1:{port}", process.pid, tls)
    try:
        _await_answer(found, bench.key, process, log)
        yield found
    finally:
        stop(process)


def _await_answer(proxy: Running, key: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ask until a real answer came through both legs: a port that listens proves little."""
    body = json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}).encode()
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if b"hello" in _post(proxy, key, body):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{proxy.name} did not come up; its log is {log}:\n{log.read_text(errors='replace')[-2000:]}")


def _post(proxy: Running, key: str, body: bytes) -> bytes:
    host, _, port = proxy.address.rpartition(":")
    if proxy.tls:
        # The certificate is this benchmark's own and has just been made.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - as said above
        connection: HTTPConnection = HTTPSConnection(host, int(port), timeout=2, context=context)
    else:
        connection = HTTPConnection(host, int(port), timeout=2)
    with closing(connection):
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        return connection.getresponse().read()
