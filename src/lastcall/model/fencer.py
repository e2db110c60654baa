"""How a machine is switched off: the ``fencers`` of a FencePolicy, as the API server stores them.

The CustomResourceDefinition is generated from these structs: types, bounds, defaults and descriptions.
"""

from enum import Enum
from typing import Annotated

from msgspec import Meta, field

from lastcall.model.base import Facts
from lastcall.model.patterns import NAME, QUALIFIED

PROGRAM = r"^fence_[a-z0-9_]+$"
ONE_LINE = r"^[^\n\r]*$"
NAME_BY_NODE = r"^([a-z0-9]|\{node\})(([-a-z0-9.]|\{node\})*([a-z0-9]|\{node\}))?$"
KEY_BY_NODE = r"^([-._a-zA-Z0-9]|\{node\})+$"
"""The name of a Secret, and of a key in it; ``{node}`` stands for the Node's name."""
HTTP = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"

KINDS = ("agent", "redfish", "ec2", "manual")
"""The kinds of fencers, by field name."""

SecretName = Annotated[
    str,
    Meta(
        pattern=NAME_BY_NODE,
        min_length=1,
        max_length=253,
        description="The Secret's name, in lastcall's own namespace; `{node}` in it stands for the Node's name.",
    ),
]
KeyInSecret = Annotated[str, Meta(pattern=KEY_BY_NODE, min_length=1, max_length=253)]
Value = Annotated[str, Meta(max_length=4096, pattern=ONE_LINE)]


class TargetCheck(Enum):
    """Whether the device must identify its machine before lastcall switches the machine off."""

    REQUIRED = "Required"
    """The device must identify its machine, and that must be the node's machine."""
    DISABLED = "Disabled"
    """A device that cannot identify its machine is accepted. A device that names another machine never is."""


class FromNode(Facts, frozen=True):
    """A value from one of the Node's own annotations or labels."""

    annotation: Annotated[str, Meta(pattern=QUALIFIED, max_length=317, description="The annotation's key.")] | None = (
        None
    )
    label: Annotated[str, Meta(pattern=QUALIFIED, max_length=317, description="The label's key.")] | None = None


class SecretKey(Facts, frozen=True):
    """A value in a Secret in lastcall's own namespace. ``{node}`` in either name stands for the Node's name."""

    name: SecretName
    key: Annotated[KeyInSecret, Meta(description="The key in its data; `{node}` in it stands for the Node's name.")]

    def key_for(self, node: str) -> tuple[str, str]:
        """The Secret's name and the key for a node."""
        return self.name.replace("{node}", node), self.key.replace("{node}", node)


class FencerCredentials(Facts, frozen=True):
    """A user and a password in a Secret in lastcall's own namespace."""

    secret_name: SecretName
    username_key: Annotated[KeyInSecret, Meta(description="The key of the user's name in its data.")] = "username"
    password_key: Annotated[KeyInSecret, Meta(description="The key of the password in its data.")] = "password"  # noqa: S105  (the name of a key)

    def secret_for(self, node: str) -> str:
        """The Secret's name for a node."""
        return self.secret_name.replace("{node}", node)


class Setting(Facts, frozen=True):
    """One text per node: the same for all, by the Node's name, or from the Node itself. Exactly one way is given."""

    value: Annotated[Value, Meta(description="The same for every node.")] | None = None
    by_node: Annotated[dict[str, Value], Meta(max_length=5000, description="By the name of the Node.")] = field(
        default_factory=dict
    )
    annotation: (
        Annotated[str, Meta(pattern=QUALIFIED, max_length=317, description="An annotation of the Node, by its key.")]
        | None
    ) = None
    label: (
        Annotated[str, Meta(pattern=QUALIFIED, max_length=317, description="A label of the Node, by its key.")] | None
    ) = None


class FenceAgentSpec(Facts, frozen=True):
    """A fence agent of ClusterLabs: a program that reads its instructions from standard input.

    Each parameter appears in one place only. ``action`` is reserved for lastcall. A node without a value in
    ``parametersByNode`` or ``parametersFrom`` cannot be fenced by this agent.
    """

    program: Annotated[
        str,
        Meta(
            pattern=PROGRAM,
            max_length=63,
            description="Its file name, such as `fence_ipmilan`; it is looked for where the controller looks for fence agents.",
        ),
    ]
    parameters: Annotated[
        dict[str, Value], Meta(max_length=64, description="Parameters with the same value for every node.")
    ] = field(default_factory=dict)
    parameters_by_node: Annotated[
        dict[str, dict[str, Value]],
        Meta(
            max_length=16,
            description="Parameters with a value for each node: the parameter, the Node's name, the value.",
        ),
    ] = field(default_factory=dict)
    parameters_from: Annotated[
        dict[str, FromNode],
        Meta(max_length=16, description="Parameters whose value is an annotation or a label of the Node."),
    ] = field(default_factory=dict)
    secret_parameters: Annotated[
        dict[str, SecretKey],
        Meta(max_length=16, description="Parameters whose value is secret; passwords cannot be given in another way."),
    ] = field(default_factory=dict)


class RedfishSpec(Facts, frozen=True):
    """The Redfish service of a BMC (DMTF DSP0266)."""

    address: Annotated[Setting, Meta(description="Where it is: `https://host[:port]`.")]
    system_id: Annotated[
        Setting, Meta(description="Which member of its /redfish/v1/Systems the machine is. No system is guessed.")
    ] = field(name="systemID")
    credentials: Annotated[FencerCredentials, Meta(description="The user that may read and reset the system.")]
    ca_secret: (
        Annotated[
            SecretKey, Meta(description="Certificates in PEM that its own is checked by; else those of the host.")
        ]
        | None
    ) = None
    insecure_skip_tls_verify: Annotated[
        bool, Meta(description="Accept any certificate: whoever stands between can read the password.")
    ] = field(default=False, name="insecureSkipTLSVerify")


class Ec2Spec(Facts, frozen=True):
    """Amazon EC2; the Node's ``spec.providerID`` names the instance."""

    region: Annotated[
        str, Meta(max_length=63, pattern=r"^([a-z0-9-]+)?$", description="Empty: that of the zone in providerID.")
    ] = ""
    credentials: (
        Annotated[
            FencerCredentials,
            Meta(description="Access key id (`username`) and secret access key; else what the SDK finds by itself."),
        ]
        | None
    ) = None
    endpoint: Annotated[
        str, Meta(max_length=253, pattern=f"^$|{HTTP}", description="Another address of its API; empty: Amazon's.")
    ] = ""


class ManualSpec(Facts, frozen=True):
    """A person switches the machine off and confirms it."""


class Fencer(Facts, frozen=True):
    """One way to switch machines off. Exactly one of ``agent``, ``redfish``, ``ec2`` and ``manual`` is given."""

    name: Annotated[str, Meta(pattern=NAME, description="Unique in the policy; evidence, metrics and events bear it.")]
    agent: Annotated[FenceAgentSpec, Meta(description="A fence agent of ClusterLabs.")] | None = None
    redfish: Annotated[RedfishSpec, Meta(description="The RedfishSpec service of a BMC.")] | None = None
    ec2: Annotated[Ec2Spec, Meta(description="Amazon EC2.")] | None = None
    manual: Annotated[ManualSpec, Meta(description="A person switches the machine off and says so.")] | None = None
    delay_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="How long is waited before it is told to switch off for the first time, from when its turn comes.",
        ),
    ] = 0
    timeout_seconds: Annotated[
        int, Meta(ge=1, le=600, description="How long one request to the device may take; then it is ended.")
    ] = 30
    attempts: Annotated[
        int, Meta(ge=1, le=10, description="How often it is asked to switch off before the next fencer's turn comes.")
    ] = 2
    target_check: Annotated[
        TargetCheck,
        Meta(
            description="Required: the device must say that the machine is the node's. Disabled: one that cannot say it"
            " passes; one that names another machine never does."
        ),
    ] = TargetCheck.REQUIRED

    @property
    def kind(self) -> str:
        """agent, redfish, ec2 or manual; empty if none of them is given."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "")
