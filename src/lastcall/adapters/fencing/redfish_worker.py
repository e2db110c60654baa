"""The process that sends one request to a Redfish service with sushy."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastcall.adapters.fencing.fence_worker import FenceAction, FenceReply
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.fencing.worker_process import FenceRequest, serve_question
from lastcall.errors import LastcallError, RefusedForSafety, TimedOut, Unavailable
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

_STATES = {
    "On": PowerState.ON,
    "Off": PowerState.OFF,
    "PoweringOn": PowerState.ON,
    "PoweringOff": PowerState.ON,
    "Paused": PowerState.ON,
}
"""Power by ``PowerState`` (DSP0268). A machine that is powering off, or paused with its memory, can write again."""
_RESETS = {FenceAction.OFF: ("ForceOff", PowerState.OFF), FenceAction.ON: ("On", PowerState.ON)}
_SYSTEM = "#ComputerSystem."


def answer_question(turn: FenceRequest[RedfishSettings]) -> FenceReply:
    """Sends the request and returns the reply. Each fault is a LastcallError with a sentence."""
    with _translating_errors(turn.settings):
        system = _find_system(turn)
        if turn.action is FenceAction.TARGET:
            target = FenceTarget(
                system_uuid=str(system.uuid or ""),
                serial=str(system.serial_number or ""),
                name=turn.settings.system_path,
            )
            return FenceReply(target=target)
        if turn.action is FenceAction.STATUS:
            return FenceReply(answer=_power_state(system))
        _reset_system(system, turn)
        return FenceReply()


def _find_system(turn: FenceRequest[RedfishSettings]) -> Any:
    """The named system, and no other resource: a reset of a chassis would reset all machines in it."""
    import sushy  # noqa: PLC0415  (an extra: where it is missing, that is the answer)
    from sushy import auth, connector  # noqa: PLC0415

    settings = turn.settings
    connection = connector.Connector(
        settings.address,
        verify=_tls_verification(settings),
        default_request_timeout=turn.seconds_per_request,
        connect_timeout=turn.seconds_per_request,
        server_side_retries=1,  # 0 would be three attempts
        server_side_retries_delay=1,
    )
    service = sushy.Sushy(
        settings.address, auth=auth.BasicAuth(settings.username, settings.password), connector=connection
    )
    system = service.get_system(settings.system_path)
    kind = str(system.json.get("@odata.type", ""))
    if not kind.startswith(_SYSTEM):
        raise RefusedForSafety(f"{settings.system_path} is no computer system but {kind or 'of no type'}")
    return system


def _tls_verification(settings: RedfishSettings) -> bool | str:
    """The ``verify`` argument of requests: a file or directory of certificates."""
    if settings.insecure:
        return False
    if settings.authority:
        descriptor = os.memfd_create("authority")  # open until the process ends
        os.write(descriptor, settings.authority.encode())
        return f"/proc/self/fd/{descriptor}"
    host = ssl.get_default_verify_paths()
    return host.cafile or host.capath or True


def _power_state(system: Any) -> FenceAnswer:
    state = str(system.json.get("PowerState") or "")
    power = _STATES.get(state, PowerState.UNKNOWN)
    if power is not PowerState.UNKNOWN:
        return FenceAnswer(power=power)
    return FenceAnswer(power=power, why=f"its PowerState is {state or 'missing'}")


def _reset_system(system: Any, turn: FenceRequest[RedfishSettings]) -> None:
    """Sends the order even if the service reports the power as off already: the report may be wrong.

    A service that refuses because the power is off already has accepted.
    """
    import sushy  # noqa: PLC0415

    reset, wanted = _RESETS[turn.action]
    turn.ensure_time_left()
    try:
        system.reset_system(sushy.ResetType(reset))
    except (sushy.exceptions.BadRequestError, sushy.exceptions.HTTPError) as error:
        if isinstance(error, sushy.exceptions.AccessError) or error.status_code >= 500:
            raise
        system.refresh(force=True)
        if _power_state(system).power is not wanted:
            raise


@contextmanager
def _translating_errors(settings: RedfishSettings) -> Iterator[None]:
    """Translates the errors of the libraries into lastcall's."""
    try:
        yield
    except LastcallError:
        raise
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'lastcall[redfish]'") from error
    except Exception as error:
        raise _translate_error(error, settings) from error


def _translate_error(error: Exception, settings: RedfishSettings) -> LastcallError:
    from sushy import exceptions  # noqa: PLC0415

    at = settings.address
    match error:
        case exceptions.AccessError():
            return Unavailable(f"{at} refuses user or password (HTTP {error.status_code})")
        case exceptions.ResourceNotFoundError():
            return Unavailable(f"{at} has no {settings.system_path}: there is no such system, or no Redfish service")
        case exceptions.HTTPError():
            return Unavailable(f"{at} answered HTTP {error.status_code}: {error.detail or error}")
        case exceptions.ConnectionError():
            return _translate_connection_error(error, settings)
        case exceptions.InvalidParameterValueError() | exceptions.MissingActionError():
            return Unavailable(f"{settings.system_path} cannot be switched so: {error}")
        case exceptions.SushyError() | ValueError():
            return Unavailable(f"{at} gave an answer that is not Redfish's: {error}")
        case _:
            return Unavailable(f"{at}: {type(error).__name__}: {error}")


def _translate_connection_error(error: Exception, settings: RedfishSettings) -> LastcallError:
    from requests import exceptions  # noqa: PLC0415

    at, cause = settings.address, error.__context__
    match cause:
        case exceptions.SSLError():
            return Unavailable(f"the certificate of {at} is not trusted: {_innermost_reason(cause)}")
        case exceptions.ConnectTimeout():
            return Unavailable(f"no connection to {at}: it does not answer")
        case exceptions.ReadTimeout():
            return TimedOut(f"{at} accepted the connection, but does not answer")
        case _:
            return Unavailable(f"no connection to {at}: {_innermost_reason(cause or error)}")


def _innermost_reason(error: BaseException) -> str:
    """The reason at the bottom of a chain of wrapped errors."""
    reason: BaseException = error
    while reason.args and isinstance(inner := getattr(reason.args[0], "reason", reason.args[0]), BaseException):
        reason = inner
    return str(reason) or type(reason).__name__


if __name__ == "__main__":
    serve_question(RedfishSettings, answer_question)
