"""Writes what deploy/helm/lastcall has from the Python manifests: grants with their reasons, policies, definitions.

``python tools/helm_chart.py`` writes the files, ``--check`` compares them. What has values is written by hand and
compared object by object in tests/system/helm/test_rendered_chart.py.
"""

import re
import sys
from pathlib import Path

import yaml

from lastcall.manifests import (
    agent,
    daemon_set,
    drainer,
    guard_eviction_grants,
    guard_grants,
    guard_policy_definition,
    guard_provider_rights,
    guard_responder_policy,
    guard_webhooks,
    own_node,
    pod_policies,
    resource_definitions,
    settle_webhook,
    uninstall_webhook,
    viewer,
)
from lastcall.manifests.controller import EXTERNAL, OWN
from lastcall.manifests.controller_grants import all_grants
from lastcall.manifests.rbac import ANYWHERE, role_rules
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.names import SYSTEM_NAMESPACE

TEMPLATES = Path(__file__).parents[1] / "deploy/helm/lastcall/templates"
WRITTEN = "{{- /* Written by tools/helm_chart.py: change src/lastcall/manifests, not this file. */ -}}\n"
RELEASE = "{{ .Release.Namespace }}"
SETTLE_SECONDS = "SETTLE_SECONDS"
FAILURE_POLICY = "FAILURE_POLICY"


def dump(value):
    """YAML in the order of the fields."""
    text = yaml.safe_dump(value, sort_keys=False, width=10_000)
    if "{{" in text:
        raise SystemExit("a manifest has {{ in it, which Helm would take for a template")
    return text


def indent(text, width):
    """Each line that is not empty, moved to the right."""
    return re.sub(r"^(?=.)", " " * width, text, flags=re.MULTILINE)


def grants_template(name, grants):
    """A list of places, each with its rules and the reason of each rule."""
    lines = [f'{{{{- define "lastcall.grants.{name}" -}}}}\n']
    for place in dict.fromkeys(one.namespace for one in grants):
        namespace = "" if place == ANYWHERE else place
        lines.append(f'- namespace: "{namespace}"\n  rules:\n')
        there = [one for one in grants if one.namespace == place]
        lines += [f"    # {one.why}\n{indent(dump(role_rules([one])), 4)}" for one in there]
    return "".join(lines) + "{{- end }}\n"


def grants_file():
    """The grants of both components for each choice, and the agents' admission policy, as named templates."""
    parts = [
        *(
            grants_template(f"agent{'.peers' * peers}{'.ownNode' * own}", agent.agent_grants(peers=peers, own_node=own))
            for own in (False, True)
            for peers in (False, True)
        ),
        *(grants_template(f"controller.{who}", all_grants(RELEASE, detach=who == OWN)) for who in (EXTERNAL, OWN)),
        *(
            grants_template(
                f"guard.{mode.value}{'.settle' * settles}",
                [
                    *guard_grants.guard_grants(RELEASE),
                    *guard_eviction_grants.eviction_request_grants(mode),
                    *(settle_webhook.settle_webhook_grants() if settles else []),
                ],
            )
            for mode in EvictionRequestMode
            for settles in (False, True)
        ),
        grants_template("guardAccess", guard_grants.access_grants()),
        grants_template("guardReleaser", guard_grants.releaser_grants()),
    ]
    [policy, _] = own_node.own_node_policy(daemon_set.NAME, SYSTEM_NAMESPACE, {})
    parts.append(f'{{{{- define "lastcall.viewerRules" -}}}}\n{dump(viewer.viewer_rules())}{{{{- end }}}}\n')
    parts += (
        f'{{{{- define "lastcall.drainer{role["kind"]}Rules" -}}}}\n{dump(role["rules"])}{{{{- end }}}}\n'
        for role in drainer.drainer_objects({})[1:]
    )
    parts.append(f'{{{{- define "lastcall.ownNodePolicy" -}}}}\n{dump(policy["spec"])}{{{{- end }}}}\n')
    return WRITTEN + "\n".join(parts)


def definition_template(definition):
    """As a template, because Helm never upgrades what is in ``crds/``; kept at an uninstall, with all its objects."""
    head = {key: definition[key] for key in ("apiVersion", "kind")}
    metadata = definition["metadata"]
    labels = metadata.get("labels", {})
    return (
        f"---\n{dump(head)}metadata:\n  name: {metadata['name']}\n"
        "  annotations:\n    helm.sh/resource-policy: keep\n"
        f"  labels:\n{indent(dump(labels), 4) if labels else ''}"
        '    {{- include "lastcall.chartLabels" . | nindent 4 }}\n'
        f"{dump({'spec': definition['spec']})}"
    )


def definitions_file():
    """All definitions; that of the guard only with the guard."""
    found = (resource_definitions.fence_policy_definition(), resource_definitions.node_shutdown_definition())
    guard = definition_template(guard_policy_definition.guard_policy_definition())
    return (
        f"{WRITTEN}{{{{- if .Values.crds.install }}}}\n{''.join(map(definition_template, found))}"
        f"{{{{- if .Values.guard.enabled }}}}\n{guard}{{{{- end }}}}\n{{{{- end }}}}\n"
    )


def guard_file():
    """What the API server asks the guard, and the policy for GuardPolicies, as named templates."""
    client = guard_webhooks.service_client(SYSTEM_NAMESPACE)
    configuration = guard_webhooks.guard_webhook_configuration(client, failure_policy=FAILURE_POLICY)
    parts = {
        "lastcall.guardWebhooks": dump(configuration["webhooks"]),
        "lastcall.guardUninstallWebhooks": dump(uninstall_webhook.uninstall_webhook_configuration(client)["webhooks"]),
        "lastcall.settleWebhooks": dump(settle_webhook.settle_webhook_configuration(client)["webhooks"]),
        "lastcall.guardProviderRights": dump(guard_provider_rights.provider_rights_policy({})["spec"]),
        "lastcall.guardResponder": dump(guard_responder_policy.responder_policy()),
    }
    found = [f'{{{{- define "{name}" -}}}}\n{text}{{{{- end }}}}\n' for name, text in parts.items()]
    return WRITTEN + "\n".join(found).replace(FAILURE_POLICY, "{{ .Values.guard.failurePolicy }}")


def pod_policies_file():
    """The specs of the policies for new pods, as named templates."""
    specs = {"settle": pod_policies.settle_policy(SETTLE_SECONDS), "priority": pod_policies.priority_policy()}
    parts = [
        f'{{{{- define "lastcall.podPolicy.{name}" -}}}}\n{dump(spec)}{{{{- end }}}}\n' for name, spec in specs.items()
    ]
    return WRITTEN + "\n".join(parts).replace(SETTLE_SECONDS, "{{ .Values.podPolicies.settleSeconds | int }}")


def main():
    """Writes or compares the files."""
    files = {
        "_grants.tpl": grants_file(),
        "_guard.tpl": guard_file(),
        "_podpolicies.tpl": pod_policies_file(),
        "customresourcedefinitions.yaml": definitions_file(),
    }
    for name, text in files.items():
        path = TEMPLATES / name
        if "--check" in sys.argv and (not path.exists() or path.read_text() != text):
            sys.exit(f"{path} is not current: run python tools/helm_chart.py")
        path.write_text(text)


if __name__ == "__main__":
    main()
