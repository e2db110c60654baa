"""The context of one request: its route and its parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lastcall.model import duration
from lastcall_lab.apiserver.routing.routes import Route
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause, bad_request_error, invalid_error
from lastcall_lab.apiserver.values.request import Object, Request, UserInfo

_LONGEST_MANAGER = 128
_VALIDATION = ("Ignore", "Strict", "Warn")


@dataclass
class RequestContext:
    """``warnings`` become Warning headers of the response, in order."""

    request: Request
    route: Route
    warnings: list[str] = field(default_factory=list)

    @property
    def user(self) -> UserInfo:
        """The authenticated or impersonated user."""
        return self.request.user

    def check_validation(self) -> None:
        """ApiError if the parameter ``fieldValidation`` of a write is invalid."""
        if self.route.verb in ("create", "update", "patch"):
            _ = self.field_validation

    def check_timeout(self) -> None:
        """ApiError if the parameter ``timeout`` is no duration. Watches use ``timeoutSeconds`` instead."""
        said = self.request.parameter("timeout")
        if said and self.route.verb != "watch":
            try:
                duration.parse(said)
            except ValueError as error:
                raise bad_request_error(f"invalid timeout specified in the request URL - {error}") from None

    @property
    def dry_run(self) -> bool:
        """Whether to do everything except the write. ApiError if the parameter is invalid."""
        values = self.request.query.get("dryRun", ())
        wrong = [value for value in values if value != "All"]
        if wrong:
            raise invalid_error(
                self._options_kind, "meta.k8s.io", "", [field_errors.not_supported("dryRun", list(values), ["All"])]
            )
        return bool(values)

    @property
    def field_validation(self) -> str:
        """How to treat unknown fields: Ignore, Warn (the default) or Strict."""
        value = self.request.parameter("fieldValidation") or "Warn"
        if value not in _VALIDATION:
            cause = field_errors.not_supported("fieldValidation", value, ["", *_VALIDATION])
            raise invalid_error(self._options_kind, "meta.k8s.io", "", [cause])
        return value

    @property
    def _options_kind(self) -> str:
        kinds = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
        return kinds.get(self.request.method, "DeleteOptions")

    @property
    def field_manager(self) -> str:
        """The manager of the written fields: the parameter, else the User-Agent's first word.

        ApiError if it is invalid.
        """
        said = self.request.parameter("fieldManager")
        if causes := [*field_manager_violations(said)]:
            raise invalid_error(self._options_kind, "meta.k8s.io", "", causes)
        agent = self.request.headers.get("user-agent", "").partition("/")[0]
        return said or "".join(letter for letter in agent if letter.isprintable())[:_LONGEST_MANAGER] or "unknown"

    def request_options(self, kind: str) -> Object:
        """The options of the request as webhooks see them."""
        options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        for name in ("fieldManager", "fieldValidation"):
            if value := self.request.parameter(name):
                options[name] = value
        return options


def field_manager_violations(manager: str) -> Iterator[Cause]:
    """The violations in a field manager's name (``field_validation.ValidateFieldManager``)."""
    if len(manager.encode()) > _LONGEST_MANAGER:
        yield field_errors.too_long("fieldManager", _LONGEST_MANAGER)
    if not manager.isprintable():
        yield field_errors.invalid("fieldManager", manager, "should only contain printable characters")
