"""``lastcall manifests``: what lastcall needs in a cluster, as YAML for ``kubectl apply``."""

import click

from lastcall.cli import guard_config
from lastcall.cli.options import DurationParam, read_content
from lastcall.guard.decisions.webhook_withdrawal import DEFAULT_SECONDS, SHORTEST_SECONDS
from lastcall.manifests.controller import EXTERNAL, IMAGE, NAMESPACE, OWN
from lastcall.manifests.daemon_set import CONTAINERD
from lastcall.manifests.guard_webhooks import FAIL, IGNORE
from lastcall.manifests.pod_policies import SECONDS
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.model.pod_creation import MOST_SETTLE_SECONDS


@click.group("manifests")
def command() -> None:
    """What lastcall needs in a cluster, as YAML for kubectl apply -f -."""


@command.command("controller")
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Where it runs, and reads Secrets.")
@click.option("--image", default=IMAGE, show_default=True, help="The image of its pods.")
@click.option("--replicas", type=int, default=2, show_default=True, help="How many of them; one at a time acts.")
@click.option(
    "--attach-detach",
    type=click.Choice([EXTERNAL, OWN]),
    default=EXTERNAL,
    show_default=True,
    help="Who detaches volumes: kube-controller-manager by the taint, or, where its controller is off, lastcall itself.",
)
@click.option(
    "--guard-withdrawal",
    type=DurationParam(endless="never", least=SHORTEST_SECONDS),
    default=f"{DEFAULT_SECONDS:g}s",
    show_default=True,
    help="After how long without a ready guard its webhooks are withdrawn, until one is ready again; or never.",
)
def controller_command(
    *, namespace: str, image: str, replicas: int, attach_detach: str, guard_withdrawal: float
) -> None:
    """Everything that lastcall controller needs, itself too.

    Applying it again changes nothing that others have written.
    """
    from lastcall.manifests.controller import ControllerChoices, controller_objects
    from lastcall.manifests.yaml_output import to_yaml

    choices = ControllerChoices(
        namespace=namespace,
        image=image,
        replicas=replicas,
        attach_detach=attach_detach,
        guard_withdrawal=guard_withdrawal,
    )
    click.echo(to_yaml(controller_objects(choices)), nl=False)


@command.command("agent")
@click.option("--image", default=IMAGE, show_default=True, help="The image of its pods.")
@click.option(
    "--container-runtime-endpoint", default=CONTAINERD, show_default=True, help="The socket of the CRI runtime."
)
@click.option("--access-only", is_flag=True, help="Only its rights: for agents that systemd runs.")
@click.option("--watchdog-peers", is_flag=True, help="Also what watchdog.peers of its configuration needs.")
@click.option(
    "--own-node", is_flag=True, help="Also a policy of admission by which an agent writes of its own node alone."
)
@click.option(
    "--node-metrics",
    is_flag=True,
    help="Also metrics over TLS on the nodes' addresses, for readers whom the API server permits.",
)
def agent_command(
    *,
    image: str,
    container_runtime_endpoint: str,
    access_only: bool,
    watchdog_peers: bool,
    own_node: bool,
    node_metrics: bool,
) -> None:
    """Everything that lastcall agent needs, itself too: a DaemonSet that observes until its configuration says otherwise.

    The key that agents share is not printed: the Secret lastcall-watchdog-peers is made by hand, once.

    With --own-node the token of each agent has to be bound to its Node or to a pod there (Kubernetes 1.32).
    """
    from lastcall.manifests.agent import AgentChoices, agent_access_objects, agent_objects
    from lastcall.manifests.yaml_output import to_yaml

    choices = AgentChoices(
        image=image,
        endpoint=container_runtime_endpoint,
        peers=watchdog_peers,
        own_node=own_node,
        node_metrics=node_metrics,
    )
    access = agent_access_objects(peers=watchdog_peers, own_node=own_node)
    click.echo(to_yaml(access if access_only else agent_objects(choices)), nl=False)


@command.command("pod-policies")
@click.option(
    "--settle-seconds",
    type=int,
    default=SECONDS,
    show_default=True,
    help="The sleep where neither namespace nor pod gives a number.",
)
def pod_policies_command(*, settle_seconds: int) -> None:
    """Two policies of admission that prepare new pods for their end, in namespaces with lastcall.dev/settle-seconds.

    Pods that serve get a sleep in front of SIGTERM, so that deletes and evictions lose no requests, and every pod gets
    its priority as an annotation. They need Kubernetes 1.36.
    """
    from lastcall.manifests.pod_policies import pod_policy_objects
    from lastcall.manifests.yaml_output import to_yaml

    click.echo(to_yaml(pod_policy_objects(seconds=settle_seconds)), nl=False)


@command.command("guard")
@click.option("--image", default=IMAGE, show_default=True, help="The image of its pods.")
@click.option("--replicas", type=int, default=2, show_default=True, help="How many of them; all answer, one prepares.")
@click.option(
    "--failure-policy",
    type=click.Choice([IGNORE, FAIL]),
    default=IGNORE,
    show_default=True,
    help="Whether deletions of guarded namespaces are allowed or refused while no guard answers.",
)
@click.option(
    "--eviction-requests",
    type=click.Choice([one.value for one in EvictionRequestMode]),
    default=EvictionRequestMode.OFF.value,
    show_default=True,
    help="Answer EvictionRequests for guarded pods, or run all EvictionRequests of the cluster, too.",
)
@click.option(
    "--settle-seconds",
    type=click.IntRange(0, MOST_SETTLE_SECONDS),
    help="Also the webhook that gives new pods a sleep in front of SIGTERM: so long where neither namespace nor pod gives"
    " a number.  [default: no such webhook]",
)
@guard_config.option
@click.option(
    "--client-ca-secret",
    metavar="NAME",
    help="A Secret whose ca.crt is the authority of the API server's certificate, as --client-ca-file of guard run.",
)
def guard_command(
    *,
    image: str,
    replicas: int,
    failure_policy: str,
    eviction_requests: str,
    settle_seconds: int | None,
    config: str | None,
    client_ca_secret: str | None,
) -> None:
    """Everything that lastcall guard run needs, itself too.

    No namespace is guarded by it alone: see lastcall manifests guard-namespace.
    """
    from lastcall.manifests.guard import GuardChoices, guard_objects
    from lastcall.manifests.yaml_output import to_yaml

    content = read_content(config) if config else b""
    choices = GuardChoices(
        image=image,
        replicas=replicas,
        failure_policy=failure_policy,
        eviction_requests=EvictionRequestMode(eviction_requests),
        settle_seconds=settle_seconds,
        config=content,
        client_ca_secret=client_ca_secret or "",
    )
    click.echo(to_yaml(guard_objects(choices)), nl=False)


@command.command("guard-namespace")
@click.argument("namespace")
def guard_namespace_command(*, namespace: str) -> None:
    """What makes NAMESPACE a guarded one: its label, and the guard's rights in it.

    The rights are to read the Secrets that GuardPolicies name, to run the commands of the providers exec and rabbitmq, to
    say in the status of a pod how far it is, and to delete pods that are ready.
    """
    from lastcall.manifests.guard import guarded_namespace_objects
    from lastcall.manifests.yaml_output import to_yaml

    click.echo(to_yaml(guarded_namespace_objects(namespace)), nl=False)
