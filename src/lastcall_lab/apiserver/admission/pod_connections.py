"""Admission attributes of a connection to a pod, from its query (``pkg/apis/core/v1/conversion.go``), pure."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values.request import Object, Request

_KINDS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}
_FLAGS = ("stdin", "stdout", "stderr", "tty")


def connect_attributes(context: RequestContext) -> AdmissionAttributes:
    """A CONNECT to the route's subresource."""
    route = context.route
    return AdmissionAttributes(
        operation="CONNECT",
        resource=route.resource,
        subresource=route.subresource,
        namespace=route.namespace,
        name=route.name,
        user=context.user,
        obj={"kind": _KINDS[route.subresource], "apiVersion": "v1", **_options(context.request, route.subresource)},
        old=None,
        dry_run=False,
        options={},
        warnings=context.warnings,
        annotations=context.request.annotations,
    )


def _options(request: Request, part: str) -> Object:
    if part == "portforward":
        ports = [int(port) for port in request.query.get("ports", ()) if port.isdecimal()]
        return {"ports": ports} if ports else {}
    options: Object = {name: True for name in _FLAGS if request.flag(name)}
    if container := request.parameter("container"):
        options["container"] = container
    if part == "exec" and (command := request.query.get("command")):
        options["command"] = list(command)
    return options
