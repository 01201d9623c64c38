"""Addresses, Services and names on the local cluster, and the ways in from the host."""

import json
import subprocess
import urllib.request
from typing import Any

import pytest

from support.local import Namespace, pod, until
from tandem_local.cluster import Cluster, kubectl_program

SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ['HOSTNAME'].encode())
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', 8000), Handler).serve_forever()
"""
READY = {"readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1}}
ASK = """
import sys, time, urllib.request
deadline = time.monotonic() + 5
while True:
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=2).read().decode()); break
    except OSError:
        if time.monotonic() > deadline: raise
        time.sleep(0.1)
"""


def service(name: str, app: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": 8000}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }


def ask(namespace: Namespace, url: str) -> str:
    return namespace.kubectl("exec", "client", "--", "python", "-c", ASK, url).strip()


def serve(namespace: Namespace) -> None:
    namespace.apply(pod("web", SERVER, container=READY), pod("client", "import time; time.sleep(1000)"))
    for name in ("web", "client"):
        namespace.wait_ready(name)


def test_a_new_service_is_known_by_its_short_full_and_headless_names(namespace: Namespace) -> None:
    serve(namespace)
    namespace.apply(service("front", "web"), service("peers", "web", clusterIP="None"))
    full = f"{namespace.name}.svc.cluster.local"
    for host in ("front", f"front.{namespace.name}", f"front.{full}", "peers:8000", f"peers.{full}:8000"):
        assert ask(namespace, f"http://{host}/") == "web"


def test_pods_of_two_nodes_reach_each_other_by_address(namespace: Namespace) -> None:
    namespace.apply(
        pod("web", SERVER, container=READY, nodeName="n1"), pod("client", "import time; time.sleep(1000)", nodeName="n2")
    )
    for name in ("web", "client"):
        namespace.wait_ready(name)
    address = namespace.get("pod", "web")["status"]["podIP"]
    assert ask(namespace, f"http://{address}:8000/") == "web"


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_pod_reaches_itself_through_its_own_service(namespace: Namespace, node: str) -> None:
    namespace.apply(pod("client", SERVER, container=READY, nodeName=node), service("own", "client"))
    namespace.wait_ready("client")
    assert ask(namespace, "http://own/") == "client"


def test_there_is_no_way_out_of_the_cluster(namespace: Namespace) -> None:
    script = """
import socket
try:
    socket.create_connection(('192.0.2.1', 80), 2)
except OSError as error:
    print(error.strerror)
"""
    namespace.apply(pod("prisoner", script, restartPolicy="Never"))
    namespace.wait_ended("prisoner")
    assert "unreachable" in namespace.kubectl("logs", "prisoner")


def test_the_host_reaches_services_and_pods_by_forwards(cluster: Cluster, namespace: Namespace) -> None:
    serve(namespace)
    namespace.apply(service("front", "web"), service("peers", "web", clusterIP="None"))
    until(lambda: namespace.get("endpoints", "peers").get("subsets"), what="the pod is an endpoint")
    address = namespace.get("pod", "web")["status"]["podIP"]
    urls = [
        cluster.forward(namespace.name, "front", 80),
        cluster.forward(namespace.name, "front", "http"),
        cluster.forward(namespace.name, "peers", "http"),
        cluster.forward_address(address, 8000),
    ]
    for url in urls:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback URL
            assert answer.read() == b"web"


def test_kubectl_forwards_a_port(cluster: Cluster, namespace: Namespace) -> None:
    serve(namespace)
    command = [kubectl_program(), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace.name, "port-forward", "web", ":8000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        assert forwarding.stdout
        port = forwarding.stdout.readline().split(":")[1].split()[0]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                assert answer.read() == b"web"
        finally:
            forwarding.terminate()


def test_a_pod_talks_to_the_api_server_with_its_own_token(namespace: Namespace) -> None:
    script = """
import json, ssl, urllib.request
folder = '/var/run/secrets/kubernetes.io/serviceaccount/'
headers = {'Authorization': 'Bearer ' + open(folder + 'token').read()}
request = urllib.request.Request('https://kubernetes.default.svc/apis', headers=headers)
context = ssl.create_default_context(cafile=folder + 'ca.crt')
print(json.load(urllib.request.urlopen(request, context=context))['kind'])
"""
    namespace.apply(pod("caller", script, restartPolicy="Never"))
    namespace.wait_ended("caller")
    assert namespace.kubectl("logs", "caller") == "APIGroupList\n"


def test_the_kubeconfig_lists_both_nodes_from_the_host(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output", "json"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["n1", "n2"]
