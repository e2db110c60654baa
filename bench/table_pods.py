"""One pod of every kind for ``beside_table``: who owns it, how it is prioritized, what state it is in."""

from pods import manifest

from lastcall.adapters.kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, SERVICES, STATEFUL_SETS

NODE = "bench"
SLOW = 3
"""Seconds that pods behind Services, and the app with a sidecar, take to end."""
STARTED = 11
"""So many containers write down that they have started."""
RUNNING = 9
"""So many pods run then; another's init container runs, one crashes, and one has no image."""
EVERYWHERE = [{"operator": "Exists"}]


def workloads(truth):
    """Resource and object of each."""
    return [
        (SERVICES, _service("web")),
        (SERVICES, _service("db", clusterIP="None")),
        (DEPLOYMENTS, _owner("Deployment", "web", _template(truth, "web", seconds=SLOW), replicas=2)),
        (STATEFUL_SETS, _owner("StatefulSet", "db", _template(truth, "db", seconds=SLOW), serviceName="db")),
        (DAEMON_SETS, _owner("DaemonSet", "log", _template(truth, "log", tolerations=EVERYWHERE))),
        (DAEMON_SETS, _owner("DaemonSet", "net", _critical(truth))),
        (PODS, {"metadata": {"name": "bare"}, "spec": _template(truth, "bare")["spec"]}),
        (JOBS, _job(truth)),
        (DEPLOYMENTS, _owner("Deployment", "side", _with_init(truth, "side", "proxy", restartPolicy="Always"))),
        (DEPLOYMENTS, _owner("Deployment", "init", _with_init(truth, "init", "first"))),
        (DEPLOYMENTS, _owner("Deployment", "crash", _other(truth, "crash", command=["/bin/sh", "-c", "exit 1"]))),
        (DEPLOYMENTS, _owner("Deployment", "image", _other(truth, "image", image="registry.invalid/none:1"))),
    ]


def static_pod(truth):
    """The manifest of a static pod."""
    spec = _template(truth, "static")["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static", "namespace": "default"}, "spec": spec}


def late_pod(truth):
    """A pod that somebody puts on the node while it shuts down."""
    spec = _template(truth, "late", tolerations=EVERYWHERE)["spec"]
    return {"metadata": {"name": "late"}, "spec": spec | {"nodeName": NODE}}


def _service(name, **spec):
    ports = [{"port": 80, "targetPort": 8080}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports, **spec}}


def _owner(kind, name, template, **spec):
    labels = template["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def _job(truth):
    template = _template(truth, "job", code=1, restartPolicy="Never")
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"metadata": {"name": "job"}, "spec": {"template": template, "podFailurePolicy": {"rules": [rule]}}}


def _template(truth, app, *, seconds=0, code=0, **more):
    """In the host's network, so that no plugin has to give addresses; it declares no ports, which would collide there."""
    spec = manifest("$(POD_NAME)", truth, in_container=True)["spec"]
    del spec["priority"]
    [container] = spec["containers"]
    _name_itself(container, str(seconds), str(code))
    return {"metadata": {"labels": {"app": app}}, "spec": {**spec, "hostNetwork": True, **more}}


def _name_itself(container, *arguments):
    container["command"] = [*container["command"], *arguments]
    container["env"] = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container["imagePullPolicy"] = "Never"


def _critical(truth):
    return _template(truth, "net", tolerations=EVERYWHERE, priorityClassName="system-node-critical")


def _with_init(truth, app, name, **more):
    """An init container that ends with SIGTERM alone, or as a sidecar."""
    made = _template(truth, app, seconds=SLOW)
    [container] = made["spec"]["containers"]
    command = [f"$(POD_NAME)-{name}" if one == "$(POD_NAME)" else one for one in container["command"]]
    first = {**container, "name": name, "command": [*command[:-2], "0", "0"], **more}
    return {**made, "spec": {**made["spec"], "initContainers": [first]}}


def _other(truth, app, **more):
    made = _template(truth, app)
    made["spec"]["containers"][0] |= more
    return made
