"""One request while it is served: where it goes, and what its parameters ask for."""

from dataclasses import dataclass, field

from lastcall.lab.apiserver import fields
from lastcall.lab.apiserver.request import Identity, Object, Request
from lastcall.lab.apiserver.routes import Route
from lastcall.lab.apiserver.status import invalid

_VALIDATION = ("Ignore", "Warn", "Strict")


@dataclass
class Context:
    """``warnings`` become Warning headers of the answer, in their order."""

    request: Request
    route: Route
    warnings: list[str] = field(default_factory=list)

    @property
    def user(self) -> Identity:
        """Who asks."""
        return self.request.user

    @property
    def dry_run(self) -> bool:
        """Whether everything is to happen but the write. ApiError if the parameter says something else."""
        values = self.request.query.get("dryRun", ())
        wrong = [value for value in values if value != "All"]
        if wrong:
            kind = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}.get(
                self.request.method, "DeleteOptions"
            )
            raise invalid(kind, "meta.k8s.io", "", [fields.not_supported("dryRun", list(values), ["All"])])
        return bool(values)

    @property
    def validation(self) -> str:
        """What to do with fields that nobody knows: Ignore, Warn (also without a word) or Strict."""
        value = self.request.parameter("fieldValidation") or "Warn"
        if value not in _VALIDATION:
            raise invalid(
                "CreateOptions",
                "meta.k8s.io",
                "",
                [fields.not_supported("fieldValidation", value, ["", *_VALIDATION])],
            )
        return value

    @property
    def manager(self) -> str:
        """Whose name the written fields get: the parameter, else the first word of User-Agent."""
        agent = self.request.headers.get("user-agent", "")
        return self.request.parameter("fieldManager") or agent.partition("/")[0] or "unknown"

    def options(self, kind: str) -> Object:
        """The options of the request as webhooks are shown them."""
        options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        for name in ("fieldManager", "fieldValidation"):
            if value := self.request.parameter(name):
                options[name] = value
        return options
