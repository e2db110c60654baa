"""The workloads of a node that shuts down: each pod writes what reaches it, with its name and its node."""

import json
import re
import subprocess
from pathlib import Path

from support.agents.system_node import Saw, manifest

NODE, OTHER = "beside-1", "lab-1"
CRITICAL = "system-node-critical"
WRITE_DEVICE = "echo written | dd of=/dev/raw conv=notrunc,fsync 2>/dev/null && say start"
TOLERATES_ALL = [{"operator": "Exists"}]


class Workloads:
    """Objects of these workloads, whose pods write to one file."""

    def __init__(self, truth: Path) -> None:
        self.truth = truth

    def everything(self):
        """What runs on the node before it shuts down."""
        return [
            self._service("web"),
            self._service("static"),
            self._workload("Deployment", "web", replicas=2),
            self._workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=[_claim("data")]),
            self._workload("StatefulSet", "raw", serviceName="raw", volumeClaimTemplates=[_claim("raw", mode="Block")]),
            self.plain("plain"),
            self._workload("DaemonSet", "critical", only_node=True, priorityClassName=CRITICAL),
            self._job(),
            self._waiting(self.bare("bare", sidecar=1)),
        ]

    def bare(self, name, *, takes=1, sidecar=None, **spec):
        """A pod without a controller."""
        template = self._template(name, takes=takes, sidecar=sidecar, only_node=True, **spec)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template["spec"]}

    def static(self, name):
        """The manifest of a critical static pod."""
        pod = self.bare(name, priorityClassName=CRITICAL)
        del pod["spec"]["nodeSelector"]
        pod["metadata"]["labels"] = {"app": name}
        return pod

    def guarded(self, name):
        """A StatefulSet of one pod, whose replacement waits for this node."""
        return self._workload("StatefulSet", name, only_node=True, serviceName=name)

    def plain(self, name):
        """A DaemonSet of one pod."""
        return self._workload("DaemonSet", name, only_node=True)

    def hooked(self, name):
        """A Deployment of one pod with a preStop hook."""
        return self._workload("Deployment", name, only_node=True, hook=1)

    def late(self, name):
        """A pod that needs no scheduler and minds no taint."""
        return self.bare(name, nodeName=NODE, tolerations=TOLERATES_ALL)

    def let_go(self):
        """The pod that waits may end."""
        (self.truth.parent / "go").touch()

    def hold(self):
        """It may not, from now on."""
        (self.truth.parent / "go").unlink(missing_ok=True)

    def _waiting(self, pod):
        """The same pod, whose app ends after SIGTERM when it may."""
        [app] = pod["spec"]["containers"]
        wait = f"while [ ! -e {self.truth.parent}/go ]; do sleep 0.1; done"
        app["command"] = [word.replace("sleep 1 & wait $!; say exit", f"{wait}; say exit") for word in app["command"]]
        return pod

    def saw(self):
        """What all pods wrote so far; the pod is ``NODE/NAME``, its sidecar ``NODE/NAME-sidecar``."""
        lines = (line.split() for line in self.truth.read_text().splitlines())
        return [Saw(float(at), pod, what) for at, pod, what in lines]

    def times(self, pod, what, *, node=NODE, since=0.0, until=float("inf")):
        """When pods of that name, or with a controller of that name, wrote it on a node."""
        wanted = re.compile(rf"{node}/{pod}(-(?!sidecar).*)?")
        saw = [s for s in self.saw() if s.what == what and since <= s.at <= until]
        return [s.at for s in saw if wanted.fullmatch(s.pod)]

    def _template(self, name, *, takes=1, sidecar=None, hook=None, only_node=False, exit_code=0, **spec):
        described = manifest("$NODE_NAME/$POD_NAME", self.truth, takes=takes, sidecar=sidecar, hook=hook)["spec"]
        described = json.loads(json.dumps(described).replace("exit 0", f"exit {exit_code}"))
        del described["priority"]
        described |= {"terminationGracePeriodSeconds": 90, **spec}
        if only_node:
            described["nodeSelector"] = {"kubernetes.io/hostname": NODE}
        return {"metadata": {"labels": {"app": name}}, "spec": described}

    def _workload(self, kind, name, *, only_node=False, hook=None, priorityClassName="", **spec):  # noqa: N803 - the field's name
        template = self._template(name, only_node=only_node, hook=hook, priorityClassName=priorityClassName)
        if "volumeClaimTemplates" in spec:
            [container], [claim] = template["spec"]["containers"], spec["volumeClaimTemplates"]
            if claim["spec"].get("volumeMode") == "Block":
                container["volumeDevices"] = [{"name": "raw", "devicePath": "/dev/raw"}]
                container["command"] = [word.replace("say start", WRITE_DEVICE) for word in container["command"]]
            else:
                container["volumeMounts"].append({"name": "data", "mountPath": "/data"})
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
        }

    def _job(self):
        """It counts no pod that was disrupted, and has no second try."""
        ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        template = self._template("job", exit_code=3, restartPolicy="Never")
        spec = {"backoffLimit": 0, "podFailurePolicy": {"rules": [ignored]}, "template": template}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec}

    @staticmethod
    def _service(name):
        spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _claim(name, *, mode="Filesystem"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "volumeMode": mode}
    return {"metadata": {"name": name}, "spec": spec}


def controlled_by(owner):
    """The metadata of a pod of this controller."""
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, "controller": True}
    return {"labels": owner["spec"]["selector"]["matchLabels"], "ownerReferences": [reference]}


def apply_objects(kubectl, objects):
    """By the real kubectl."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    return kubectl("apply -f -", given=listed)


def kept_open_below(directory: Path):
    """The files below a directory that loop devices are attached to."""
    files = [path.read_text().rstrip("\n") for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [file for file in files if file.startswith(f"{directory}/")]


def mounted_below(directory: Path):
    """The mount points below a directory."""
    table = subprocess.run(["findmnt", "-rno", "TARGET"], capture_output=True, text=True, check=True).stdout
    return [line for line in table.splitlines() if line.startswith(f"{directory}/")]
