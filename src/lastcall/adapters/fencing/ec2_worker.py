"""The process that sends one request to EC2 with boto3."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastcall.adapters.fencing.ec2 import Ec2Settings
from lastcall.adapters.fencing.fence_worker import FenceAction, FenceReply
from lastcall.adapters.fencing.worker_process import FenceRequest, serve_question
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.power import InstanceState
from lastcall.ports.fences import FenceAnswer, FenceTarget

_STATES = {
    "pending": InstanceState.RUNNING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.RUNNING,
    "stopping": InstanceState.RUNNING,
    "stopped": InstanceState.STOPPED,
    "terminated": InstanceState.TERMINATED,
}
"""Power by InstanceState; an instance that is shutting down may still write."""
_REFUSED = (
    "AuthFailure",
    "UnauthorizedOperation",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "OptInRequired",
    "ExpiredToken",
    "AccessDenied",
)
_MISSING = "InvalidInstanceID.NotFound"


def answer_question(turn: FenceRequest[Ec2Settings]) -> FenceReply:
    """Sends the request and returns the reply. Each fault is a LastcallError with a sentence."""
    with _translating_errors(turn.settings):
        client = _make_client(turn)
        if turn.action is FenceAction.STATUS:
            return FenceReply(answer=_power_state(client, turn.settings))
        if turn.action is FenceAction.TARGET:
            return FenceReply(target=_fence_target(client, turn.settings))
        _switch_power(client, turn)
        return FenceReply()


def _make_client(turn: FenceRequest[Ec2Settings]) -> Any:
    import boto3  # noqa: PLC0415  (an extra: where it is missing, that is the answer)
    from botocore.config import Config  # noqa: PLC0415

    settings = turn.settings
    session = boto3.Session(
        aws_access_key_id=settings.access_key_id or None,
        aws_secret_access_key=settings.secret_access_key or None,
        region_name=settings.region,
    )
    found = session.get_credentials()
    if found is not None:
        kept = found.get_frozen_credentials()
        turn.secrets += [kept.secret_key or "", kept.token or ""]
    once = Config(
        connect_timeout=turn.seconds_per_request,
        read_timeout=turn.seconds_per_request,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    return session.client("ec2", endpoint_url=settings.endpoint or None, config=once)


def _switch_power(client: Any, turn: FenceRequest[Ec2Settings]) -> None:
    """Switches the power, once EC2 has answered a read: a hanging API would execute a queued order later.

    The order is sent even if EC2 reports the instance as stopped: that report may be stale.
    """
    state = _power_state(client, turn.settings)
    if state.instance is InstanceState.NOT_FOUND:
        raise Unavailable(state.why)
    if state.instance is InstanceState.TERMINATED and turn.action is FenceAction.OFF:
        return  # a terminated instance does not come back, and EC2 would refuse
    only = [turn.settings.instance]
    turn.ensure_time_left()
    if turn.action is FenceAction.OFF:
        # Without SkipOsShutdown even a forced stop shuts the operating system down in order. That takes minutes, in
        # which it may still write.
        client.stop_instances(InstanceIds=only, Force=True, SkipOsShutdown=True)
    else:
        client.start_instances(InstanceIds=only)


def _fence_target(client: Any, settings: Ec2Settings) -> FenceTarget:
    """The instance in the form of a providerID, from what EC2 reports."""
    found = _find_instance(client, settings)
    if found is None:
        raise Unavailable(_not_found_message(settings))
    zone = found.get("Placement", {}).get("AvailabilityZone", "")
    return FenceTarget(
        provider_id=f"aws:///{zone}/{found['InstanceId']}", name=f"{settings.instance} in {settings.region}"
    )


def _power_state(client: Any, settings: Ec2Settings) -> FenceAnswer:
    found = _find_instance(client, settings)
    if found is None:
        return FenceAnswer(
            power=InstanceState.NOT_FOUND.power, instance=InstanceState.NOT_FOUND, why=_not_found_message(settings)
        )
    said = str(found.get("State", {}).get("Name", ""))
    state = _STATES.get(said, InstanceState.UNKNOWN)
    why = f"{settings.instance} is in the state {said or 'of none'}" if state is InstanceState.UNKNOWN else ""
    return FenceAnswer(power=state.power, instance=state, why=why)


def _find_instance(client: Any, settings: Ec2Settings) -> Any | None:
    """EC2's description of the instance; None if not found. Raises Unavailable if it describes another instance."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    try:
        answer = client.describe_instances(InstanceIds=[settings.instance])
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == _MISSING:
            return None
        raise
    found = [one for group in answer.get("Reservations", ()) for one in group.get("Instances", ())]
    if not found:
        return None
    if [one.get("InstanceId") for one in found] != [settings.instance]:
        raise Unavailable(f"EC2 was asked for {settings.instance}, and answered for others")
    return found[0]


def _not_found_message(settings: Ec2Settings) -> str:
    return (
        f"EC2 finds no {settings.instance} in {settings.region}, which proves nothing: region or account may be wrong"
    )


@contextmanager
def _translating_errors(settings: Ec2Settings) -> Iterator[None]:
    """Translates the errors of the library into lastcall's."""
    try:
        yield
    except LastcallError:
        raise
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'lastcall[ec2]'") from error
    except Exception as error:
        raise _translate_error(error, settings) from error


def _translate_error(error: Exception, settings: Ec2Settings) -> LastcallError:
    from botocore import exceptions  # noqa: PLC0415

    match error:
        case exceptions.ClientError():
            return _translate_client_error(error, settings)
        case exceptions.NoCredentialsError() | exceptions.PartialCredentialsError():
            return Unavailable("there are no credentials: neither in a Secret, nor where the SDK looks for them")
        case exceptions.SSLError():
            return Unavailable(f"the certificate of EC2's API is not trusted: {error}")
        case exceptions.ReadTimeoutError():
            return TimedOut("EC2's API accepted the connection, but does not answer")
        case exceptions.EndpointConnectionError() | exceptions.ConnectTimeoutError():
            return Unavailable(f"no connection to EC2's API: {error}")
        case _:
            return Unavailable(f"EC2: {type(error).__name__}: {error}")


def _translate_client_error(error: Any, settings: Ec2Settings) -> LastcallError:
    said = error.response.get("Error", {})
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    if code == _MISSING:
        return Unavailable(_not_found_message(settings))
    if code in _REFUSED:
        return Unavailable(f"EC2 refuses the credentials, or what they may do ({code}): {message}")
    return Unavailable(f"EC2 refuses ({code}): {message}")


if __name__ == "__main__":
    serve_question(Ec2Settings, answer_question)
