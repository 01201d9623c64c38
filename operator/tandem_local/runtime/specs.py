"""Turns a container's CRI configuration into the plain specification that `container_init` obeys. Pure."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tandem_local.environments import EMPTIED
from tandem_local.runtime.images import Image
from tandem_local.runtime.state import Container

__all__ = ["container_spec", "exec_spec"]

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# fmt: off
_DEFAULT_CAPABILITIES = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "NET_RAW",
    "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
})
# fmt: on


def container_spec(container: Container, image: Image) -> dict[str, Any]:
    """Specify the first process of a container.

    Raises:
        ValueError: the pod gives no command; mapped images have none of their own.
    """
    config = container.config
    command = [*config.command, *config.args]
    volumes = _volume_mounts(config.mounts)
    if not config.command:
        raise ValueError("no command: images of the local cluster have no entry point, so the pod must give `command`")
    return {
        **_process(container, image, terminal=False),
        "join": 0,
        "command": command,
        "network": container.sandbox.network,
        "hostname": container.sandbox.config.hostname,
        "root": str(container.folder / "root"),
        "upper": str(container.folder / "upper"),
        "work": str(container.folder / "work"),
        "lower": ":".join([*image.layers, "/"]),
        "resolver": resolver(container.sandbox.config.dns_config),
        "mounts": [*_image_mounts(image, [each["target"] for each in volumes]), *volumes],
        "read_only": config.linux.security_context.readonly_rootfs,
    }


def exec_spec(container: Container, image: Image, *, command: Iterable[str], terminal: bool) -> dict[str, Any]:
    """Specify a process that enters a running container."""
    return {**_process(container, image, terminal=terminal), "join": container.process, "command": list(command)}


def resolver(dns: Any) -> str:
    """Text of the pod's /etc/resolv.conf; empty if the kubelet gave no DNS configuration."""
    lines = [f"nameserver {server}" for server in dns.servers]
    lines += [f"search {' '.join(dns.searches)}"] if dns.searches else []
    lines += [f"options {' '.join(dns.options)}"] if dns.options else []
    return "".join(f"{line}\n" for line in lines)


def _process(container: Container, image: Image, *, terminal: bool) -> dict[str, Any]:
    config, security = container.config, container.config.linux.security_context
    user = security.run_as_user.value
    environment = {
        "PATH": _DEFAULT_PATH,
        "HOSTNAME": container.sandbox.config.hostname,
        "HOME": "/" if user else "/root",
        "LANG": "C.UTF-8",
        **({"TERM": "xterm"} if terminal else {}),
        **image.environment,
        **{each.key: each.value.decode() for each in config.envs},
    }
    return {
        "terminal": terminal,
        "environment": environment,
        "folder": config.working_dir or "/",
        "capabilities": capabilities(security),
        "user": user,
        "group": security.run_as_group.value,
        "groups": list(security.supplemental_groups),
        "no_new_privileges": security.no_new_privs,
    }


def capabilities(security: Any) -> list[str] | None:
    """Names of the capabilities to keep; None means all of them."""
    add, drop = (
        {name.upper().removeprefix("CAP_") for name in names}
        for names in (security.capabilities.add_capabilities, security.capabilities.drop_capabilities)
    )
    if security.privileged or "ALL" in add:
        return None
    return sorted((set() if "ALL" in drop else _DEFAULT_CAPABILITIES - drop) | add)


def _image_mounts(image: Image, volumes: Iterable[str]) -> list[dict[str, Any]]:
    # What lies on the root's own file system is in the overlay already, unless something hides it, as the container's
    # own /tmp hides a checkout below /tmp.
    device = Path("/").stat().st_dev
    hiding = [*EMPTIED, *volumes]
    return [
        {"source": folder, "target": folder, "read_only": True, "create": False}
        for folder in image.folders
        if Path(folder).stat().st_dev != device or any(Path(folder).is_relative_to(each) for each in hiding)
    ]


def _volume_mounts(mounts: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "source": each.host_path,
            "target": each.container_path,
            "read_only": each.readonly,
            "create": not Path(each.host_path).exists(),
        }
        for each in mounts
    ]
