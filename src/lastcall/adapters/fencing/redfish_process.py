"""The process that puts one question to a Redfish service, by sushy."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastcall.adapters.fencing.errand import Action, Reply
from lastcall.adapters.fencing.errand_process import Turn, serve
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.errors import LastcallError, RefusedForSafety, TimedOut, Unavailable
from lastcall.model.power import Power
from lastcall.ports_fences import FenceAnswer, FenceTarget

_STATES = {
    "On": Power.ON,
    "Off": Power.OFF,
    "PoweringOn": Power.ON,
    "PoweringOff": Power.ON,
    "Paused": Power.ON,
}
"""``PowerState`` (DSP0268). What is on its way down, or stands still with all that it has in memory, can write again."""
_RESETS = {Action.OFF: ("ForceOff", Power.OFF), Action.ON: ("On", Power.ON)}
_SYSTEM = "#ComputerSystem."


def answer(turn: Turn[RedfishSettings]) -> Reply:
    """Asks; LastcallError with a sentence for each thing that can be wrong."""
    with _told(turn.settings):
        system = _system(turn)
        if turn.action is Action.TARGET:
            target = FenceTarget(
                system_uuid=str(system.uuid or ""),
                serial=str(system.serial_number or ""),
                name=turn.settings.path,
            )
            return Reply(target=target)
        if turn.action is Action.STATUS:
            return Reply(answer=_power(system))
        _reset(system, turn)
        return Reply()


def _system(turn: Turn[RedfishSettings]) -> Any:
    """The system that is named, and no other resource: a chassis can be reset too, with all machines in it."""
    import sushy  # noqa: PLC0415  (an extra: where it is missing, that is the answer)
    from sushy import auth, connector  # noqa: PLC0415

    settings = turn.settings
    connection = connector.Connector(
        settings.address,
        verify=_verify(settings),
        default_request_timeout=turn.patience,
        connect_timeout=turn.patience,
        server_side_retries=1,  # 0 would be three attempts
        server_side_retries_delay=1,
    )
    service = sushy.Sushy(
        settings.address, auth=auth.BasicAuth(settings.username, settings.password), connector=connection
    )
    system = service.get_system(settings.path)
    kind = str(system.json.get("@odata.type", ""))
    if not kind.startswith(_SYSTEM):
        raise RefusedForSafety(f"{settings.path} is no computer system but {kind or 'of no type'}")
    return system


def _verify(settings: RedfishSettings) -> bool | str:
    """What the certificate is verified by, as requests wants it: a file or folder of certificates."""
    if settings.insecure:
        return False
    if settings.authority:
        descriptor = os.memfd_create("authority")  # open until the process ends
        os.write(descriptor, settings.authority.encode())
        return f"/proc/self/fd/{descriptor}"
    host = ssl.get_default_verify_paths()
    return host.cafile or host.capath or True


def _power(system: Any) -> FenceAnswer:
    state = str(system.json.get("PowerState") or "")
    power = _STATES.get(state, Power.UNKNOWN)
    if power is not Power.UNKNOWN:
        return FenceAnswer(power=power)
    return FenceAnswer(power=power, why=f"its PowerState is {state or 'not told'}")


def _reset(system: Any, turn: Turn[RedfishSettings]) -> None:
    """Also where it says that the power is off already: it may err, and then nobody would have cut it.

    A service that refuses then, since there is nothing to do, has accepted.
    """
    import sushy  # noqa: PLC0415

    reset, wanted = _RESETS[turn.action]
    turn.before_sending()
    try:
        system.reset_system(sushy.ResetType(reset))
    except (sushy.exceptions.BadRequestError, sushy.exceptions.HTTPError) as error:
        if isinstance(error, sushy.exceptions.AccessError) or error.status_code >= 500:
            raise
        system.refresh(force=True)
        if _power(system).power is not wanted:
            raise


@contextmanager
def _told(settings: RedfishSettings) -> Iterator[None]:
    """What the libraries raise, in our words."""
    try:
        yield
    except LastcallError:
        raise
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'lastcall[redfish]'") from error
    except Exception as error:
        raise _in_words(error, settings) from error


def _in_words(error: Exception, settings: RedfishSettings) -> LastcallError:
    from sushy import exceptions  # noqa: PLC0415

    at = settings.address
    match error:
        case exceptions.AccessError():
            return Unavailable(f"{at} refuses user or password (HTTP {error.status_code})")
        case exceptions.ResourceNotFoundError():
            return Unavailable(f"{at} has no {settings.path}: there is no such system, or no Redfish service")
        case exceptions.HTTPError():
            return Unavailable(f"{at} answered HTTP {error.status_code}: {error.detail or error}")
        case exceptions.ConnectionError():
            return _connection(error, settings)
        case exceptions.InvalidParameterValueError() | exceptions.MissingActionError():
            return Unavailable(f"{settings.path} cannot be switched so: {error}")
        case exceptions.SushyError() | ValueError():
            return Unavailable(f"{at} gave an answer that is not Redfish's: {error}")
        case _:
            return Unavailable(f"{at}: {type(error).__name__}: {error}")


def _connection(error: Exception, settings: RedfishSettings) -> LastcallError:
    from requests import exceptions  # noqa: PLC0415

    at, cause = settings.address, error.__context__
    match cause:
        case exceptions.SSLError():
            return Unavailable(f"the certificate of {at} is not trusted: {_innermost(cause)}")
        case exceptions.ConnectTimeout():
            return Unavailable(f"no connection to {at}: it does not answer")
        case exceptions.ReadTimeout():
            return TimedOut(f"{at} has taken the connection and says nothing")
        case _:
            return Unavailable(f"no connection to {at}: {_innermost(cause or error)}")


def _innermost(error: BaseException) -> str:
    """The reason below what libraries have wrapped around it."""
    reason: BaseException = error
    while reason.args and isinstance(inner := getattr(reason.args[0], "reason", reason.args[0]), BaseException):
        reason = inner
    return str(reason) or type(reason).__name__


if __name__ == "__main__":
    serve(RedfishSettings, answer)
