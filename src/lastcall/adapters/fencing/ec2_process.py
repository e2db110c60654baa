"""The process that puts one question to EC2, by boto3."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastcall.adapters.fencing.ec2 import Ec2Settings
from lastcall.adapters.fencing.errand import Action, Reply
from lastcall.adapters.fencing.errand_process import Turn, serve
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.power import Instance
from lastcall.ports_fences import FenceAnswer, FenceTarget

_STATES = {
    "pending": Instance.RUNNING,
    "running": Instance.RUNNING,
    "shutting-down": Instance.RUNNING,
    "stopping": Instance.RUNNING,
    "stopped": Instance.STOPPED,
    "terminated": Instance.TERMINATED,
}
"""InstanceState; what is on its way down may still write."""
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


def answer(turn: Turn[Ec2Settings]) -> Reply:
    """Asks; LastcallError with a sentence for each thing that can be wrong."""
    with _told(turn.settings):
        client = _client(turn)
        if turn.action is Action.STATUS:
            return Reply(answer=_state(client, turn.settings))
        if turn.action is Action.TARGET:
            return Reply(target=_target(client, turn.settings))
        _switch(client, turn)
        return Reply()


def _client(turn: Turn[Ec2Settings]) -> Any:
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
        connect_timeout=turn.patience, read_timeout=turn.patience, retries={"total_max_attempts": 1, "mode": "standard"}
    )
    return session.client("ec2", endpoint_url=settings.endpoint or None, config=once)


def _switch(client: Any, turn: Turn[Ec2Settings]) -> None:
    """It is told only once it has answered: an API that hangs would do later what it had received by then.

    Also where it says that the instance is stopped: that may be old.
    """
    state = _state(client, turn.settings)
    if state.instance is Instance.NOT_FOUND:
        raise Unavailable(state.why)
    if state.instance is Instance.TERMINATED and turn.action is Action.OFF:
        return  # it is not coming back, and EC2 would refuse
    only = [turn.settings.instance]
    turn.before_sending()
    if turn.action is Action.OFF:
        # Without SkipOsShutdown even a forced stop lets the system go down in order, which takes minutes in which it may
        # write.
        client.stop_instances(InstanceIds=only, Force=True, SkipOsShutdown=True)
    else:
        client.start_instances(InstanceIds=only)


def _target(client: Any, settings: Ec2Settings) -> FenceTarget:
    """In the words of a providerID what EC2 tells of it."""
    found = _instance(client, settings)
    if found is None:
        raise Unavailable(_not_found(settings))
    zone = found.get("Placement", {}).get("AvailabilityZone", "")
    return FenceTarget(
        provider_id=f"aws:///{zone}/{found['InstanceId']}", name=f"{settings.instance} in {settings.region}"
    )


def _state(client: Any, settings: Ec2Settings) -> FenceAnswer:
    found = _instance(client, settings)
    if found is None:
        return FenceAnswer(power=Instance.NOT_FOUND.power, instance=Instance.NOT_FOUND, why=_not_found(settings))
    said = str(found.get("State", {}).get("Name", ""))
    state = _STATES.get(said, Instance.UNKNOWN)
    why = f"{settings.instance} is in the state {said or 'of none'}" if state is Instance.UNKNOWN else ""
    return FenceAnswer(power=state.power, instance=state, why=why)


def _instance(client: Any, settings: Ec2Settings) -> Any | None:
    """What EC2 tells of it; None if it does not find it. Unavailable if it tells of anything else."""
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


def _not_found(settings: Ec2Settings) -> str:
    return (
        f"EC2 finds no {settings.instance} in {settings.region}, which proves nothing: region or account may be wrong"
    )


@contextmanager
def _told(settings: Ec2Settings) -> Iterator[None]:
    """What the library raises, in our words."""
    try:
        yield
    except LastcallError:
        raise
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'lastcall[ec2]'") from error
    except Exception as error:
        raise _in_words(error, settings) from error


def _in_words(error: Exception, settings: Ec2Settings) -> LastcallError:
    from botocore import exceptions  # noqa: PLC0415

    match error:
        case exceptions.ClientError():
            return _refusal(error, settings)
        case exceptions.NoCredentialsError() | exceptions.PartialCredentialsError():
            return Unavailable("there are no credentials: neither in a Secret, nor where the SDK looks for them")
        case exceptions.SSLError():
            return Unavailable(f"the certificate of EC2's API is not trusted: {error}")
        case exceptions.ReadTimeoutError():
            return TimedOut("EC2's API has taken the connection and says nothing")
        case exceptions.EndpointConnectionError() | exceptions.ConnectTimeoutError():
            return Unavailable(f"no connection to EC2's API: {error}")
        case _:
            return Unavailable(f"EC2: {type(error).__name__}: {error}")


def _refusal(error: Any, settings: Ec2Settings) -> LastcallError:
    said = error.response.get("Error", {})
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    if code == _MISSING:
        return Unavailable(_not_found(settings))
    if code in _REFUSED:
        return Unavailable(f"EC2 refuses the credentials, or what they may do ({code}): {message}")
    return Unavailable(f"EC2 refuses ({code}): {message}")


if __name__ == "__main__":
    serve(Ec2Settings, answer)
