"""Bugs of who may what at the lab's API server: impersonation, paths below watch, nodes, bodies that lie about themselves."""

from planted.bug import Bug

ATTACKS = "tests/adapters/test_lab_attacks.py"
AUTHORIZATION = (
    "tests/conformance/test_node_restriction.py",
    "tests/core/test_lab_authorization.py",
    "tests/core/test_lab_node_tokens.py",
)
IMPERSONATION = ("tests/core/test_lab_impersonation.py",)
WATCH = (ATTACKS, "tests/core/test_lab_hostile_requests.py")
APPLY = ("tests/core/test_lab_apply.py", "tests/core/test_lab_hostile_bodies.py")

ACTING_AS = "lab/apiserver/authorization/impersonation.py"
RESTRICTION = "lab/apiserver/admission/node_restriction.py"
MIRROR = "lab/apiserver/admission/node_pods.py"
ACCOUNTS = "lab/apiserver/admission/service_accounts.py"
NODE = "lab/apiserver/authorization/node.py"
REFERENCES = "lab/apiserver/authorization/pod_references.py"
TOKENS = "lab/apiserver/admission/node_tokens.py"
ROUTES = "lab/apiserver/routes.py"


def acting_as(name: str, old: str, new: str) -> Bug:
    """A bug of impersonation."""
    return Bug(f"impersonation: {name}", ACTING_AS, old, new, IMPERSONATION)


def node(name: str, file: str, old: str, new: str) -> Bug:
    """A bug of what a node may do."""
    return Bug(f"node: {name}", file, old, new, AUTHORIZATION)


BUGS = [
    acting_as("no right is needed", "    if not decision.allowed:\n", "    if False:\n"),
    acting_as(
        "a user needs no right",
        'yield asked._replace(group=group, resource="users", name=wanted.name)',
        "yield from ()",
    ),
    acting_as("any user does", 'resource="users", name=wanted.name', 'resource="users"'),
    acting_as("groups need no right", "for one in wanted.groups:\n", "for one in ():\n"),
    acting_as("only the first group needs a right", "for one in wanted.groups:\n", "for one in wanted.groups[:1]:\n"),
    acting_as("a UID needs no right", "    if wanted.uid:\n", "    if False:\n"),
    acting_as("extra fields need no right", "for key, values in wanted.extra.items():", "for key, values in ():"),
    acting_as(
        "only the first value of an extra field needs a right", "for value in values:", "for value in values[:1]:"
    ),
    acting_as("one extra field is as good as another", "subresource=key, name=value", 'subresource="*", name=value'),
    acting_as(
        "a service account needs no right",
        'yield asked._replace(group=group, resource="serviceaccounts", namespace=account[0], name=account[1])',
        "yield from ()",
    ),
    acting_as(
        "any service account of the namespace does", "namespace=account[0], name=account[1])", "namespace=account[0])"
    ),
    acting_as(
        "a service account is asked about in a namespace of the requester's choice",
        "namespace=account[0], name=account[1])",
        'namespace="default", name=account[1])',
    ),
    acting_as(
        "a node needs no right",
        'yield asked._replace(group=group, resource="nodes", name="*" if mode == "associated-node" else node)',
        "yield from ()",
    ),
    acting_as("the right to what is done as another is not asked about", "    if mode:\n", "    if False:\n"),
    acting_as("a constrained right reaches masters", "if mode and MASTERS in wanted.groups:", "if False:"),
    acting_as(
        "every service account is associated with every node",
        "list(requester.extra.get(_NODE, ())) == [node]",
        "True",
    ),
    Bug(
        "paths below watch: a write is what its method says",
        ROUTES,
        '        return "watch" if request.method == "GET" else ""\n',
        '        if request.method == "GET":\n            return "watch"\n',
        WATCH,
    ),
    Bug(
        "paths below watch: subresources are served",
        ROUTES,
        "    if where.watch and subresource:\n",
        "    if False:\n",
        WATCH,
    ),
    node("is restricted in nothing", RESTRICTION, "if check and (why := check(attributes, node)):", "if False:"),
    node("writes another node", RESTRICTION, "    if attributes.name != node:\n", "    if False:\n"),
    node(
        "changes its taints",
        RESTRICTION,
        'if (new["spec"].get("taints") or []) != (old["spec"].get("taints") or []):',
        "if False:",
    ),
    node(
        "changes its owners",
        RESTRICTION,
        'if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):',
        "if False:",
    ),
    node(
        "registers with any label", RESTRICTION, 'return said + ", ".join(forbidden) if forbidden else ""', 'return ""'
    ),
    node(
        "labels itself as it likes",
        RESTRICTION,
        'return f"is not allowed to modify labels: {\', \'.join(forbidden)}" if forbidden else ""',
        'return ""',
    ),
    node("takes labels away", RESTRICTION, "for key in {*now, *before} if", "for key in now if"),
    node(
        "labels below restricted domains",
        RESTRICTION,
        'prefix == domain or prefix.endswith(f".{domain}")',
        "prefix == domain",
    ),
    node(
        "deletes another's pod",
        RESTRICTION,
        'if (attributes.old or {})["spec"].get("nodeName", "") != node:',
        "if False:",
    ),
    node(
        "evicts another's pod",
        RESTRICTION,
        'if self._existing(attributes)["spec"].get("nodeName", "") != node:',
        "if self._existing(attributes) is None:",
    ),
    node("writes the status of another's pod", RESTRICTION, 'if old["spec"].get("nodeName", "") != node:', "if False:"),
    node(
        "labels a pod by its status",
        RESTRICTION,
        'if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):',
        "if False:",
    ),
    node("claims resources by a status", RESTRICTION, "if _claims(now) != _claims(before):", "if False:"),
    node(
        "claims extended resources by a status",
        RESTRICTION,
        'if now.get("extendedResourceClaimStatus") != before.get("extendedResourceClaimStatus"):',
        "if False:",
    ),
    node("writes other parts of pods", RESTRICTION, 'if part not in ("", "status", "eviction"):', "if False:"),
    node(
        "changes pods",
        RESTRICTION,
        'return f\'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods\'',
        'return ""',
    ),
    node(
        "creates a pod that is no mirror",
        MIRROR,
        'if MIRROR not in (pod["metadata"].get("annotations") or {}):',
        "if False:",
    ),
    node("creates a pod for another", MIRROR, 'if pod["spec"].get("nodeName", "") != name:', "if False:"),
    node("creates a pod with two owners", MIRROR, "    if len(owners) > 1:\n", "    if False:\n"),
    node(
        "creates a pod of another owner",
        MIRROR,
        'if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", name):',
        "if False:",
    ),
    node("creates a pod that it does not control", MIRROR, 'if not owner.get("controller"):', "if False:"),
    node("creates a pod that keeps it from going", MIRROR, 'if owner.get("blockOwnerDeletion"):', "if False:"),
    node("creates a pod of an earlier Node", MIRROR, 'if owner.get("uid") == uid else', "if True else"),
    node(
        "registers with a source of its configuration",
        RESTRICTION,
        'if new["spec"].get("configSource"):',
        "if False:",
    ),
    node("creates a pod with a service account", ACCOUNTS, 'if "serviceaccounts" in found:', "if False:"),
    node("creates a pod with secrets", ACCOUNTS, 'if "secrets" in found:', "if False:"),
    node("creates a pod with a token", ACCOUNTS, 'if any("serviceAccountToken" in source', 'if any("x" in source'),
    node("creates a pod with config maps", MIRROR, 'if any(one.resource == "configmaps"', 'if any(one.resource == "x"'),
    node("creates a pod with devices", MIRROR, 'if spec.get("resourceClaims"):', "if False:"),
    node(
        "creates a pod with a claim or a driver", MIRROR, "for kind, what in _VOLUMES.items()", "for kind, what in ()"
    ),
    node("creates a pod with certificates", MIRROR, "for kind, what in _SOURCES.items()", "for kind, what in ()"),
    node("creates a pod with a secret in a variable", REFERENCES, '"valueFrom", "secretKeyRef", "name"', '"x"'),
    node("creates a pod with a secret as variables", REFERENCES, '_at(source, "secretRef", "name")', '""'),
    node("creates a pod with a projected secret", REFERENCES, '_at(source, "secret", "name")', '""'),
    node(
        "reads what a pod on another node refers to",
        NODE,
        'pods = self._store.objects("pods", namespace, interest=("spec.nodeName", node))\n'
        '        return [pod for pod in pods if pod.fields.get("spec.nodeName") == node]',
        'return [*self._store.objects("pods", namespace)]',
    ),
    node(
        "keeps Leases elsewhere",
        RESTRICTION,
        '    if attributes.namespace != "kube-node-lease":\n',
        "    if False:\n",
    ),
    node(
        "makes another's Lease",
        RESTRICTION,
        'return "" if same else "can only access node lease with',
        'return "" if True else "can only access node lease with',
    ),
    node(
        "makes another's CSINode",
        RESTRICTION,
        'return "" if same else "can only access CSINode with',
        'return "" if True else "can only access CSINode with',
    ),
    node("writes claims", RESTRICTION, '    if attributes.subresource != "status":\n', "    if False:\n"),
    node(
        "writes anything of a claim's status",
        RESTRICTION,
        "if _fixed(attributes.obj or {}) != _fixed(attributes.old or {}):",
        "if False:",
    ),
    node(
        "runs commands in pods",
        NODE,
        "        return NO_OPINION\n\n    # -- what is related",
        "        return ALLOWED\n\n    # -- what is related",
    ),
    node(
        "reads everything",
        NODE,
        "if self._has_path(node, asked.resource, asked.namespace, asked.name):",
        "if True:",
    ),
    node("reads every Secret", NODE, 'return resource == "secrets" and', 'return resource == "secrets" or'),
    node(
        "reads every ConfigMap",
        NODE,
        '"configmaps": self._read_namespaced',
        '"configmaps": lambda node, asked: ALLOWED',
    ),
    node(
        "reads every claim",
        NODE,
        '"persistentvolumeclaims": self._claim',
        '"persistentvolumeclaims": lambda node, asked: ALLOWED',
    ),
    node(
        "reads every volume",
        NODE,
        'return self._uses_volume(node, self._object(resource, "", name))',
        "return True",
    ),
    node(
        "reads every attachment",
        NODE,
        'return (attachment.get("spec") or {}).get("nodeName") == node',
        "return True",
    ),
    node(
        "reads every pod", NODE, 'return pod is not None and pod.fields.get("spec.nodeName", "") == node', "return True"
    ),
    node(
        "reads the same name in other namespaces", NODE, "in self._pods(node, namespace))", 'in self._pods(node, ""))'
    ),
    node("reads Secrets of volumes that claims only name", NODE, "and self._uses_volume(node, volume)", ""),
    node("changes Secrets", NODE, "        if asked.verb not in _READ:\n", "        if False:\n"),
    node("lists volumes", NODE, '        if asked.verb != "get":\n', "        if False:\n"),
    node("deletes claims", NODE, "        if asked.verb not in _CHANGE:\n", "        if False:\n"),
    node("writes service accounts", NODE, 'if asked.verb != "create" or not asked.name:', "if False:"),
    node("writes parts of service accounts", NODE, 'if asked.subresource != "token":', "if False:"),
    node("lists pods of any node by a selector", NODE, "and one.value == node for one", "for one"),
    node("lists pods of all nodes but its own", NODE, "and one.equal and one.value == node", "and one.value == node"),
    node("lists pods by any field with its name", NODE, 'one.field == "spec.nodeName" and', ""),
    node(
        "lists all pods",
        NODE,
        'return _denied("can only list/watch pods with spec.nodeName field selector")',
        "return ALLOWED",
    ),
    node("reads other nodes", NODE, "            if asked.name == node:\n", "            if True:\n"),
    node("uses another's Lease", NODE, "    if asked.namespace != NODE_LEASES:\n", "    if False:\n"),
    node(
        "reads another's Lease",
        NODE,
        '        return _denied("can only access node lease with',
        '        return ALLOWED if asked else _denied("can only access node lease with',
    ),
    node(
        "lists Leases",
        NODE,
        'return _denied("can only get, create, update, patch, or delete a node lease")',
        "return ALLOWED",
    ),
    node(
        "reads another's CSINode",
        NODE,
        '        return _denied("can only access CSINode with',
        '        return ALLOWED if asked else _denied("can only access CSINode with',
    ),
    node("is whoever has its name", NODE, "and NODES in user.groups", ""),
    node(
        "is restricted without being of the group", RESTRICTION, '"system:nodes" not in attributes.user.groups', "False"
    ),
    node(
        "makes itself rights by a mirror pod",
        REFERENCES,
        'frozenset() if MIRROR in (pod["metadata"].get("annotations") or {}) else named_references(pod)',
        "named_references(pod)",
    ),
    node(
        "gets tokens without a pod",
        TOKENS,
        'return "node requested token not bound to a pod"',
        'return ""',
    ),
    node("gets tokens of a pod by its name", TOKENS, "        if not uid:\n", "        if False:\n"),
    node("gets tokens of an earlier pod", TOKENS, 'if pod["metadata"]["uid"] != uid:', "if False:"),
    node("gets tokens of another's pod", TOKENS, 'if pod["spec"].get("nodeName") != user.node:', "if False:"),
    node("gets tokens for two audiences", TOKENS, "        if len(audiences) > 1:\n", "        if False:\n"),
    node("gets tokens for any audience", TOKENS, "        if audience in found:\n", "        if True:\n"),
    node(
        "gets tokens of accounts of no pod",
        NODE,
        '        if asked.subresource != "token":\n            return _denied("can only create token subresource of serviceaccount")\n        return self._related(node, asked)',
        "        return ALLOWED",
    ),
    Bug(
        "an apply patch whose apiVersion is a number",
        "lab/apiserver/patching.py",
        "(said if isinstance(said := config.get(name), str) else",
        "((said := config.get(name)) or",
        APPLY,
    ),
]
