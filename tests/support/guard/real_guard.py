"""``lastcall guard run`` in front of a real kube-apiserver, and guarded pods that no kubelet runs.

The webhooks are at URLs of this machine; everything else is as ``lastcall manifests guard`` has it.
"""

import contextlib
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request

import yaml
from support.kube.kubectl import Kubectl
from support.kube.real_api_server import RealApiServer

from lastcall.manifests import guard_webhooks, settle_webhook, uninstall_webhook
from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.names import GUARD_UNINSTALL, M_GUARD_REVIEWS

SHOP, NODE = "shop", "bench"
_BY_HAND = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service")
_REVIEWS = re.compile(rf"^{M_GUARD_REVIEWS}(?:_total)?{{[^}}]*}} (\S+)$", re.MULTILINE)


class Application:
    """Answers the questions of the provider ``http``; ``calls`` are their paths."""

    def __init__(self):
        self.is_ready, self.calls = False, []
        self.port = 0

    @contextlib.contextmanager
    def serving(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _handler(self):
        application = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                application.calls.append(self.path.partition("?")[0].strip("/"))
                state = "ready" if application.is_ready else "preparing"
                body = json.dumps({"healthy": True, "state": state, "message": "moves its jobs"}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.do_GET()

            def log_message(self, *args):
                pass

        return Handler


class RealGuard:
    """``enter`` it: until the guard answers and leads. ``ports`` are two free ones."""

    def __init__(self, directory, *, ports):
        self.directory = directory
        self._webhook, self._metrics = ports
        self.application = Application()
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        (self.directory / "plane").mkdir()
        with contextlib.ExitStack() as stack:
            self.server = stack.enter_context(RealApiServer(self.directory / "plane"))
            stack.enter_context(self.application.serving())
            self.kubectl = Kubectl(self.server.kubeconfig("admin"), self.directory, namespace=SHOP)
            self.anywhere = Kubectl(self.server.kubeconfig("admin"), self.directory, namespace="")
            self._install()
            stack.enter_context(self._guard())
            self._wait_until_held()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def make_pod(self, name, *, phase="Running", labels=None, namespace=SHOP):
        """It is bound to the node and has this phase, which no kubelet says."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {"app": "jobs"}}}
        pod["metadata"]["namespace"] = namespace
        spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": NODE}
        self.anywhere("create -f -", given=pod | {"spec": spec | {"automountServiceAccountToken": False}})
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": phase, "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "conditions": [ready]}
        patch = json.dumps({"status": status})
        self.anywhere(f"patch pod {name} -n {namespace} --subresource=status -p", patch)
        return name

    def hold(self, name):
        """A person has asked for it in vain."""
        said = self.kubectl.fails(f"delete pod {name} --wait=false")
        assert "(TooManyRequests)" in said, said
        return said

    def entry(self, name):
        found = self.kubectl.json("get guardpolicy jobs").get("status", {}).get("pods", ())
        return next((one for one in found if one["name"] == name), None)

    def wait_for_state(self, name, state):
        self.wait(lambda: (self.entry(name) or {}).get("state") == state, f"{state} {name}")

    def exists(self, name):
        return self.kubectl.run(f"get pod {name}").code == 0

    def count_reviews(self):
        """So many reviews of removals the guard has answered."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=30) as page:
            return sum(float(one) for one in _REVIEWS.findall(page.read().decode()))

    def wait(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"no {what} in {seconds} s:\n{self._log.read_text()[-2000:]}"
            time.sleep(0.2)

    @contextlib.contextmanager
    def removing_terminating_pods(self):
        """What the kubelet does with pods that are being deleted."""
        stopped = threading.Event()

        def run():
            while not stopped.wait(0.3):
                for pod in self.kubectl.json("get pods")["items"]:
                    if "deletionTimestamp" in pod["metadata"]:
                        name = pod["metadata"]["name"]
                        self.kubectl.run(f"delete pod {name} --grace-period=0 --force --wait=false")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    # -- within --------------------------------------------------------------------------------------------------------

    def _install(self):
        choices = GuardChoices(settle_seconds=2, eviction_requests=EvictionRequestMode.RESPOND)
        found = [self._at_url(one) for one in guard_objects(choices) if one["kind"] not in _BY_HAND]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SHOP}}
        every = [*found, *guarded_namespace_objects(SHOP), node, account]
        self.anywhere("apply -f -", given={"apiVersion": "v1", "kind": "List", "items": every})
        self.anywhere("create namespace open")
        self.anywhere("create serviceaccount default -n open")
        self.anywhere("wait crd guardpolicies.lastcall.dev --for=condition=Established --timeout=60s")
        spec = {
            "selector": {"matchLabels": {"app": "jobs"}},
            "provider": {"http": {"port": self.application.port, "reversible": True}},
            "maxUnavailable": 10,
        }
        policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "jobs"}}
        self.kubectl("apply -f -", given=policy | {"spec": spec})

    def _at_url(self, obj):
        """The webhooks at this machine, since no Service leads here."""
        url, name, labels = f"https://127.0.0.1:{self._webhook}", obj["metadata"]["name"], obj["metadata"].get("labels")
        if obj["kind"] == "MutatingWebhookConfiguration":
            client = guard_webhooks.url_client(f"{url}{settle_webhook.PATH}")
            return settle_webhook.settle_webhook_configuration(client, labels=labels)
        if obj["kind"] != "ValidatingWebhookConfiguration":
            return obj
        if name == GUARD_UNINSTALL:
            client = guard_webhooks.url_client(f"{url}{uninstall_webhook.PATH}")
            return uninstall_webhook.uninstall_webhook_configuration(client, labels=labels)
        client = guard_webhooks.url_client(f"{url}{guard_webhooks.PATH}")
        return guard_webhooks.guard_webhook_configuration(client, failure_policy=guard_webhooks.FAIL, labels=labels)

    @contextlib.contextmanager
    def _guard(self):
        access = self.directory / "guard.kubeconfig"
        config = yaml.safe_load(self.server.kubeconfig("admin").read_text())
        config["users"][0]["user"] = {"token": self.anywhere("create token lastcall-guard -n lastcall-system").strip()}
        access.write_text(yaml.safe_dump(config))
        self._log = self.directory / "guard.log"
        said = [f"--kubeconfig={access}", f"--webhook-bind-address=127.0.0.1:{self._webhook}"]
        said += [f"--metrics-bind-address=127.0.0.1:{self._metrics}", "--certificate-name=127.0.0.1"]
        said += ["--allowed-network=127.0.0.0/8", "--drain-seconds=0", "--settle-seconds=2", "--verbose"]
        with (
            self._log.open("wb") as file,
            subprocess.Popen(
                [sys.executable, "-m", "lastcall", "guard", "run", *said], stdout=file, stderr=file
            ) as run,
        ):
            try:
                yield
            finally:
                run.terminate()
                run.wait(60)

    def _wait_until_held(self):
        self.make_pod("first")
        self.wait(
            lambda: "TooManyRequests" in self.kubectl.run("delete pod first --wait=false --dry-run=server").err,
            "guard that answers",
        )
        self.kubectl("annotate pod first lastcall.dev/guard-bypass-until=2999-01-01T00:00:00Z")
        self.kubectl("delete pod first --grace-period=0 --force")
