"""Pods on the local cluster behave as on any other: users, roots, logs, restarts, messages, refusals."""

import json
import tempfile
from pathlib import Path

from support.local import Namespace, pod, until
from tandem_local.cluster import Cluster

SERVER = "import http.server; http.server.ThreadingHTTPServer(('', 8000), http.server.SimpleHTTPRequestHandler).serve_forever()"
READY = {"readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1}}


def test_a_restricted_pod_runs_as_nobody_on_a_read_only_root_with_our_packages(namespace: Namespace) -> None:
    script = """
import os, tandem_api, aiohttp
print('user', os.getuid(), 'capabilities', [l for l in open('/proc/self/status') if l.startswith('CapBnd')][0].split()[1])
try:
    open('/written', 'w')
except OSError as error:
    print('root', error.strerror)
open('/tmp/written', 'w').write('x')
open('/dev/termination-log', 'w').write('what to change')
print('tmp', 'written' in os.listdir('/tmp'))
raise SystemExit(3)
"""
    volume = {"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}  # noqa: S108 - in the container
    namespace.apply(pod("nobody", script, volumes=[{"name": "tmp", "emptyDir": {}}], container=volume, restartPolicy="Never"))
    ended = namespace.wait_ended("nobody")
    assert (ended["exitCode"], ended["message"]) == (3, "what to change")
    log = namespace.kubectl("logs", "nobody").splitlines()
    assert log == ["user 65532 capabilities 0000000000000000", "root Read-only file system", "tmp True"]


def test_a_container_sees_nothing_of_the_hosts_temporary_files(namespace: Namespace) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp") as secret:
        namespace.apply(pod("empty", "import os; print(os.listdir('/tmp'))", restartPolicy="Never"))
        namespace.wait_ended("empty")
        seen = json.loads(namespace.kubectl("logs", "empty").replace("'", '"'))
        assert Path(secret.name).name not in seen
        # A checkout below /tmp is shown there to run from, and nothing beside it.
        checkout = Path(__file__).resolve().parts
        assert set(seen) <= ({checkout[2]} if checkout[1] == "tmp" else set())


def test_a_name_that_is_not_mapped_cannot_be_pulled_and_the_event_says_what_is(namespace: Namespace) -> None:
    namespace.apply(pod("foreign", "", container={"image": "example.com/unknown:1"}))

    def reason() -> str | None:
        statuses = namespace.get("pod", "foreign")["status"].get("containerStatuses") or [{}]
        waiting = statuses[0].get("state", {}).get("waiting", {})
        return str(waiting["reason"]) if waiting.get("reason") in {"ErrImagePull", "ImagePullBackOff"} else None

    until(reason, what="the image is refused")
    events = namespace.kubectl("get", "events", "--output", "jsonpath={.items[*].message}")
    assert "tandem.local/workers:dev" in events


def test_a_killed_process_is_restarted_and_its_earlier_log_is_kept(namespace: Namespace) -> None:
    script = "import time; print('started', flush=True); time.sleep(1000)"
    namespace.apply(pod("killed", script))
    namespace.wait_ready("killed")
    # From outside: a process without a handler ignores signals as pid 1 of its container.
    namespace.cluster.run_in("sh", "-c", "kill -9 $(pgrep -f 'print\\(.started')")

    def restarted() -> bool:
        status = namespace.get("pod", "killed")["status"]["containerStatuses"][0]
        return bool(status["restartCount"] == 1 and status["ready"])

    until(restarted, what="the container is restarted")
    assert namespace.kubectl("logs", "killed", "--previous") == "started\n"


def test_exec_passes_input_output_and_the_exit_code(namespace: Namespace) -> None:
    namespace.apply(pod("shell", SERVER, container=READY))
    namespace.wait_ready("shell")
    assert namespace.kubectl("exec", "-i", "shell", "--", "cat", stdin="a line\n") == "a line\n"
    printed = namespace.kubectl("exec", "shell", "--", "sh", "-c", "sh -c 'exit 7'; echo $?")
    assert printed == "7\n"


def test_gpus_are_counted_by_the_scheduler(namespace: Namespace) -> None:
    asked = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    for name in ("first", "second", "third"):
        namespace.apply(pod(name, SERVER, container=asked | READY))

    def states() -> list[str]:
        pods = json.loads(namespace.kubectl("get", "pods", "--output", "json"))["items"]
        return sorted(each["status"]["phase"] for each in pods)

    until(lambda: states() == ["Pending", "Running", "Running"], what="two of three pods find a node with eight GPUs")


def test_gpus_survive_a_restart_of_the_kubelet(cluster: Cluster) -> None:
    cluster.run_in("sh", "-c", "kill -9 $(pgrep -f [h]ostname-override=n2)")
    status = "jsonpath={.status.capacity.nvidia\\.com/gpu} {.status.conditions[?(@.type=='Ready')].status}"
    boot = "jsonpath={.status.conditions[?(@.type=='Ready')].lastHeartbeatTime}"
    before = cluster.kubectl("get", "node", "n2", "--output", boot)
    until(lambda: cluster.kubectl("get", "node", "n2", "--output", boot) != before, what="the new kubelet reports")
    until(lambda: cluster.kubectl("get", "node", "n2", "--output", status) == "8 True", what="the node offers its GPUs again")


def test_a_folder_of_the_host_can_be_mounted(cluster: Cluster, namespace: Namespace) -> None:
    cluster.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce-", "--overwrite")
    volume = {"name": "host", "hostPath": {"path": "/usr/share", "type": "Directory"}}
    mounts = {"volumeMounts": [{"name": "host", "mountPath": "/model", "readOnly": True}]}
    namespace.apply(
        pod("mounted", "import os; print(len(os.listdir('/model')))", volumes=[volume], container=mounts, restartPolicy="Never")
    )
    namespace.wait_ended("mounted")
    assert int(namespace.kubectl("logs", "mounted")) > 0


def test_pods_with_what_the_runtime_lacks_are_refused_in_words(namespace: Namespace) -> None:
    namespace.apply(pod("shared", SERVER, shareProcessNamespace=True))

    def message() -> str:
        return namespace.kubectl("get", "events", "--output", "jsonpath={.items[*].message}")

    until(lambda: "shareProcessNamespace" in message(), what="the refusal is an event")
