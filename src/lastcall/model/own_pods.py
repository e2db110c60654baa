"""The pods of the API that are bound to one node: the uid that its runtime knows them by, and what an agent needs. Pure."""

import re

from msgspec.structs import replace

from lastcall.model.pods import Container, ObjectMetadata, Pod, PodSpec, PodStatus, Volume
from lastcall.names import CONFIG_SOURCE, GUARD_READY, MIRROR_ANNOTATION

_PLUGIN_DIRECTORY = re.compile(r"/plugins(_registry)?(/|$)")
_NETWORK_DIRECTORY = re.compile(r"/cni(/|$)")


def runtime_uid(pod: Pod) -> str:
    """The uid of the pod's sandbox: the pod's own, or that of the static pod that it mirrors.

    The kubelet runs a static pod under the hash of its manifest, writes the hash to ``kubernetes.io/config.hash``, and
    copies it to the mirror pod's ``kubernetes.io/config.mirror`` (pkg/kubelet/config/common.go: applyDefaults,
    pkg/kubelet/pod/mirror_client.go: CreateMirrorPod).
    """
    return (pod.metadata.annotations or {}).get(MIRROR_ANNOTATION) or pod.metadata.uid


def is_static(pod: Pod) -> bool:
    """Whether the node has this pod from elsewhere than the API, so that the pod's object there has another uid.

    The runtime says so of a pod that it lists.
    """
    return (pod.metadata.annotations or {}).get(CONFIG_SOURCE, "api") != "api"


def keep_essentials(pod: Pod) -> Pod:
    """The pod with only those fields that an agent needs, which change rarely.

    Environments, commands and annotations may hold secrets, and the status changes often: none of them is kept, but the
    guard's condition of a guarded pod. The deletion of a mirror pod is not kept either, because its static pod continues to run.
    """
    spec = pod.spec
    return Pod(
        metadata=_essential_metadata(pod.metadata),
        spec=PodSpec(
            containers=tuple(map(_essential_container, spec.containers)),
            init_containers=tuple(map(_essential_container, spec.init_containers)) if spec.init_containers else None,
            node_name=spec.node_name,
            priority=spec.priority,
            priority_class_name=spec.priority_class_name,
            termination_grace_period_seconds=spec.termination_grace_period_seconds,
            restart_policy=spec.restart_policy,
            host_network=spec.host_network,
            dns_policy=spec.dns_policy,
            volumes=tuple(
                volume
                for volume in spec.volumes or ()
                if volume.persistent_volume_claim or volume.ephemeral or volume.csi or _is_serving_volume(volume)
            )
            or None,
        ),
        status=PodStatus(
            conditions=tuple(one for one in pod.status.conditions or () if one.type == GUARD_READY) or None
        ),
    )


def is_plugin_directory(path: str) -> bool:
    """Whether a path of the host is one of the directories by which a kubelet finds CSI drivers, or below one."""
    return _PLUGIN_DIRECTORY.search(path) is not None


def serves_other_pods(pod: Pod) -> bool:
    """Whether the pod runs a network plugin or a CSI driver, which the end of other pods may need.

    A network plugin installs itself below directories named ``cni``, such as /etc/cni/net.d and /opt/cni/bin, where the
    runtime looks for it.
    """
    return any(map(_is_serving_volume, pod.spec.volumes or ()))


def _is_serving_volume(volume: Volume) -> bool:
    path = volume.host_path.path if volume.host_path else ""
    return is_plugin_directory(path) or _NETWORK_DIRECTORY.search(path) is not None


def _essential_metadata(metadata: ObjectMetadata) -> ObjectMetadata:
    kept = replace(metadata, annotations=None, finalizers=None, generation=0, resource_version="")
    mirror = (metadata.annotations or {}).get(MIRROR_ANNOTATION)
    if not mirror:
        return kept
    mark = {MIRROR_ANNOTATION: mirror}
    return replace(kept, annotations=mark, deletion_timestamp=None, deletion_grace_period_seconds=None)


def _essential_container(container: Container) -> Container:
    return Container(
        name=container.name,
        ports=container.ports,
        lifecycle=container.lifecycle,
        restart_policy=container.restart_policy,
    )
