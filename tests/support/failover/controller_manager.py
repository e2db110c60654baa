"""kube-controller-manager 1.36 on a cluster of objects as they are: an oracle that shares nothing with lastcall's rules.

It goes step by step as the source does, and knows only what ``support.failover.snapshots`` makes.
"""

from datetime import timedelta

from support.failover.snapshots import NOW, OUT, unique


class Upstream:
    """One round of each controller; ``rules`` as for ``support.failover.snapshots.planned``."""

    def __init__(self, objects, rules):
        self.rules = rules
        self.nodes, self.pods, self.volumes, self.attachments = (
            {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}
            for kind in ("Node", "Pod", "PersistentVolume", "VolumeAttachment")
        )

    def ready(self, name):
        found = [one for one in self.nodes[name]["status"]["conditions"] if one["type"] == "Ready"]
        return bool(found) and found[0]["status"] == "True"

    def out_of_service(self, name):
        return OUT in [one["key"] for one in self.nodes[name]["spec"]["taints"]]

    # -- podgc/gc_controller.go ----------------------------------------------------------------------------------------

    def collected(self):
        """Names of pods, and the reason that came first."""
        found = {}
        for reason, names in (
            ("terminated", self.terminated()),
            ("out-of-service", self.terminating()),
            ("orphaned", self.orphaned()),
            ("unscheduled", self.unscheduled()),
        ):
            for name in names:
                found.setdefault(name, reason)
        return found

    def terminated(self):
        threshold = self.rules["finished"]
        if threshold <= 0:
            return []
        ended = [one for one in self.pods.values() if one["status"]["phase"] in ("Succeeded", "Failed")]
        ended.sort(key=lambda one: one["metadata"]["name"])
        ended.sort(key=lambda one: one["metadata"]["creationTimestamp"])
        ended.sort(key=lambda one: (one["status"]["phase"], one["status"]["reason"]) != ("Failed", "Evicted"))
        excess = len(ended) - threshold
        return [one["metadata"]["name"] for one in ended[:excess]] if excess > 0 else []

    def terminating(self):
        for name, one in self.pods.items():
            on = one["spec"]["nodeName"]
            if "deletionTimestamp" not in one["metadata"] or on not in self.nodes:
                continue
            if not self.ready(on) and self.out_of_service(on):
                yield name

    def orphaned(self):
        for name, one in self.pods.items():
            on = one["spec"]["nodeName"]
            if on and on not in self.nodes and self.rules["quarantine_elapsed"]:
                yield name

    def unscheduled(self):
        for name, one in self.pods.items():
            if "deletionTimestamp" in one["metadata"] and not one["spec"]["nodeName"]:
                yield name

    # -- tainteviction/taint_eviction.go -------------------------------------------------------------------------------

    def evicted(self):
        """Names of pods, and when they are deleted."""
        found = {}
        for name, one in self.pods.items():
            node = self.nodes.get(one["spec"]["nodeName"], {"spec": {"taints": []}})
            taints = [taint for taint in node["spec"]["taints"] if taint["effect"] == "NoExecute"]
            seconds = self.stays(taints, one["spec"]["tolerations"]) if taints else -1
            if seconds >= 0:
                found[name] = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return found

    def stays(self, taints, tolerations):
        """Seconds; -1 is for ever."""
        least = None
        for taint in taints:
            for one in tolerations:
                if (
                    one.get("effect", taint["effect"]) == taint["effect"]
                    and one.get("key", taint["key"]) == taint["key"]
                ):
                    seconds = one.get("tolerationSeconds")
                    if seconds is not None:
                        least = max(0, seconds) if least is None else min(least, max(0, seconds))
                    break
            else:
                return 0
        return -1 if least is None else least

    # -- attachdetach/reconciler/reconciler.go -------------------------------------------------------------------------

    def detached(self):
        """Names of attachments that are detached by force, and the reason that is counted."""
        found = {}
        for name, one in self.attachments.items():
            on, volume = one["spec"]["nodeName"], one["spec"]["source"]["persistentVolumeName"]
            if self.desired(volume, on):
                continue
            healthy, out_of_service = (
                (on in self.nodes and self.ready(on)),
                (on in self.nodes and self.out_of_service(on)),
            )
            expired = self.rules["detach_timeout_elapsed"] and self.rules["force_on_timeout"]
            force = not healthy and expired
            if self.mounted(volume, on) and not force and not out_of_service:
                continue
            if expired:
                found[name] = "timeout"
            elif out_of_service:
                found[name] = "out-of-service"
        return found

    def desired(self, volume, on):
        found = self.volumes[volume]
        claim = found["spec"]["claimRef"]["name"]
        return found["status"]["phase"] == "Bound" and on in self.nodes and any(self.wants(claim, on))

    def wants(self, claim, on):
        for one in self.pods.values():
            states = [key for status in one["status"]["containerStatuses"] for key in status["state"]]
            ended = one["status"]["phase"] in ("Failed", "Succeeded") or (
                "deletionTimestamp" in one["metadata"] and "running" not in states
            )
            claims = [volume["persistentVolumeClaim"]["claimName"] for volume in one["spec"]["volumes"]]
            yield one["spec"]["nodeName"] == on and claim in claims and not ended

    def mounted(self, volume, on):
        status = self.nodes[on]["status"] if on in self.nodes else {"volumesAttached": [], "volumesInUse": []}
        reported = [one["name"] for one in status["volumesAttached"]]
        return unique(volume) not in reported or unique(volume) in status["volumesInUse"]
