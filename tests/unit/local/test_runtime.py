"""The runtime's pure parts: specifications of containers, logs, figures, methods."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

stubs = pytest.importorskip("tandem_local.stubs.cri_pb2", reason="the runtime's messages are not generated: run `make setup`")

from tandem_local.runtime import processes, protocol, specs  # noqa: E402 - only where the messages are
from tandem_local.runtime.images import Image, ImageCalls  # noqa: E402
from tandem_local.runtime.logs import ContainerLog, log_line  # noqa: E402
from tandem_local.runtime.pod_network import NetworkError, PodNetworks, add_inside  # noqa: E402
from tandem_local.runtime.sandboxes import unsupported  # noqa: E402
from tandem_local.runtime.state import Container, Sandbox, matches  # noqa: E402
from tandem_local.runtime.stats import Usage, parse_usage  # noqa: E402

messages = protocol.messages
IMAGE = Image(environment={"PATH": "/venv/bin", "A": "image"}, layers=("/layer",), folders=())


def container(**config: Any) -> Container:
    sandbox = Sandbox("s", messages.PodSandboxConfig(hostname="pod"), created=0, network="/run/netns/x")
    made = messages.ContainerConfig(**config)
    return Container("c", sandbox, made, folder=Path("/state/c"), created=0, log=ContainerLog(Path("/logs/0.log")))


def test_the_pods_variables_win_over_the_images() -> None:
    variables = [messages.KeyValue(key="A", value=b"pod")]
    spec = specs.container_spec(container(command=["x"], args=["y"], envs=variables), IMAGE)
    assert spec["command"] == ["x", "y"]
    assert spec["environment"]["A"] == "pod"
    assert spec["environment"]["PATH"] == "/venv/bin"
    assert spec["lower"] == "/layer:/"


def test_a_container_without_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="no entry point"):
        specs.container_spec(container(args=["y"]), IMAGE)


def test_an_images_folder_that_a_volume_would_hide_is_shown_on_top_of_it(tmp_path: Path) -> None:
    image = Image(environment={}, layers=(), folders=(str(tmp_path), "/usr"))
    hiding = messages.Mount(host_path="/volumes/tmp", container_path=str(tmp_path.parent))
    targets = [each["target"] for each in specs.container_spec(container(command=["x"], mounts=[hiding]), image)["mounts"]]
    assert str(tmp_path) in targets
    assert "/usr" not in targets


@pytest.mark.parametrize(
    ("add", "drop", "privileged", "kept"),
    [
        ([], ["ALL"], False, []),
        (["NET_ADMIN"], ["ALL"], False, ["NET_ADMIN"]),
        (["CAP_SYS_TIME"], ["all"], False, ["SYS_TIME"]),
        ([], [], True, None),
        (["ALL"], [], False, None),
    ],
)
def test_capabilities_are_dropped_before_they_are_added(
    *, add: list[str], drop: list[str], privileged: bool, kept: list[str] | None
) -> None:
    capabilities = messages.Capability(add_capabilities=add, drop_capabilities=drop)
    security = messages.LinuxContainerSecurityContext(capabilities=capabilities, privileged=privileged)
    assert specs.capabilities(security) == kept


def test_an_ordinary_container_keeps_the_usual_capabilities() -> None:
    kept = specs.capabilities(messages.LinuxContainerSecurityContext())
    assert kept is not None
    assert "CHOWN" in kept
    assert "SYS_ADMIN" not in kept


def test_the_resolver_file_is_the_kubelets_configuration() -> None:
    dns = messages.DNSConfig(servers=["10.96.0.10"], searches=["a.svc", "svc"], options=["ndots:5"])
    assert specs.resolver(dns) == "nameserver 10.96.0.10\nsearch a.svc svc\noptions ndots:5\n"
    assert specs.resolver(messages.DNSConfig()) == ""


def test_log_lines_are_stamped_and_parts_are_marked() -> None:
    now = 1_000_000_000_000_000_123
    assert log_line(b"text\n", "stdout", nanoseconds=now) == b"2001-09-09T01:46:40.000000123Z stdout F text\n"
    assert log_line(b"part", "stderr", nanoseconds=now) == b"2001-09-09T01:46:40.000000123Z stderr P part\n"


async def test_a_log_goes_on_in_a_new_file_after_a_rotation(tmp_path: Path) -> None:
    log = ContainerLog(tmp_path / "pod" / "0.log", clock=lambda: 0)
    log.reopen()
    reader, writer = os.pipe()
    copying = asyncio.create_task(log.copy(reader, "stdout"))
    os.write(writer, b"one\n")
    await written(log.path, b"one\n")
    log.path.rename(tmp_path / "rotated")
    log.reopen()
    await asyncio.to_thread(write_all, writer, b"two\n" + b"x" * 100_000 + b"\n")
    await copying
    log.close()
    assert (tmp_path / "rotated").read_bytes().endswith(b"F one\n")
    lines = log.path.read_bytes().splitlines()
    assert lines[0].endswith(b"F two")
    assert sum(line.count(b"x") for line in lines) == 100_000
    assert {line.split()[2] for line in lines[1:-1]} == {b"P"}


def write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)


async def written(path: Path, data: bytes) -> None:
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(lambda: path.read_bytes().endswith(data)):
            await asyncio.sleep(0.01)


def test_usage_is_read_past_a_command_with_spaces_and_brackets() -> None:
    stat = "7 (a) b) " + " ".join(["S", *["0"] * 10, "150", "50", *["0"] * 8, "3"])
    assert parse_usage(stat, ticks=100, page=4096) == Usage(processor=2_000_000_000, memory=12288)


def test_filters_match_by_the_start_of_an_id_and_by_labels() -> None:
    query = messages.ContainerFilter(id="ab", label_selector={"x": "1"})
    assert matches(query, "abc", {"x": "1", "y": "2"})
    assert not matches(query, "bc", {"x": "1"})
    assert not matches(query, "abc", {"x": "2"})


def test_every_method_name_of_the_protocol_has_one_python_name() -> None:
    assert protocol.method_name("RunPodSandbox") == "run_pod_sandbox"
    assert protocol.method_name("ExecSync") == "exec_sync"


def test_a_pod_has_a_route_to_its_node_only_and_everything_else_by_it() -> None:
    lines = add_inside("10.244.3.9", gateway="10.244.3.1").splitlines()
    assert lines[2:] == [
        "addr add 10.244.3.9/32 dev eth0",
        "route add 10.244.3.1 dev eth0 scope link",
        "route add default via 10.244.3.1",
    ]


async def test_addresses_are_given_round_and_round_until_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def done(batch: str, *, namespace: str | None = None) -> None:
        """Nothing to do."""

    monkeypatch.setattr("tandem_local.runtime.pod_network._ip", done)
    networks = PodNetworks("n1", "10.244.1")
    made = [await networks.add(f"{number:08x}") for number in range(253)]
    assert [made[0].address, made[-1].address] == ["10.244.1.2", "10.244.1.254"]
    with pytest.raises(NetworkError, match="no address left"):
        await networks.add("ffffffff")
    await networks.remove(made[5])
    assert (await networks.add("ffffffff")).address == made[5].address


def test_what_the_runtime_lacks_is_refused() -> None:
    shared = messages.NamespaceOption(pid=messages.POD)
    config = messages.PodSandboxConfig()
    config.linux.security_context.namespace_options.CopyFrom(shared)
    assert "shareProcessNamespace" in unsupported(config)
    config = messages.PodSandboxConfig(port_mappings=[messages.PortMapping(host_port=80)])
    config.linux.security_context.namespace_options.pid = messages.CONTAINER
    assert "hostPort" in unsupported(config)


async def test_only_mapped_names_are_images() -> None:
    calls = ImageCalls({"known:1": IMAGE}, Path("/state"))
    request = messages.ImageStatusRequest(image=messages.ImageSpec(image="known:1"))
    assert (await calls.image_status(request, None)).image.id == "known:1"
    request = messages.ImageStatusRequest(image=messages.ImageSpec(image="known:2"))
    assert not (await calls.image_status(request, None)).HasField("image")


async def test_pipes_of_many_commands_that_run_for_long_are_read_at_once() -> None:
    pipes = [os.pipe() for _ in range(64)]
    reads = [asyncio.create_task(processes.read_all(reader)) for reader, _ in pipes]
    await asyncio.sleep(0)  # lets all of them begin
    last = os.pipe()
    os.write(last[1], b"told")
    os.close(last[1])
    async with asyncio.timeout(30):
        assert await processes.read_all(last[0]) == b"told"
        for number, (_, writer) in enumerate(pipes):
            os.write(writer, b"%d" % number)
            os.close(writer)
        assert await asyncio.gather(*reads) == [b"%d" % number for number in range(64)]
