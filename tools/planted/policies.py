"""Bugs of FencePolicies, of what is shipped for the controller, and of a node's last word."""

from planted.bug import Bug

READ = ("tests/core/test_fence_policy.py",)
CHOICE = ("tests/core/test_failover_policies.py",)
SHIPPED = ("tests/core/test_manifests.py", "tests/core/test_manifests_definitions.py")
RBAC = ("tests/core/test_manifests_rbac.py",)
LAST_WORD = ("tests/adapters/test_kube_shutdown_records.py",)
RUN = ("tests/core/test_run.py",)

BUGS = [
    Bug(
        "the least priority holds",
        "failover/limits/policies.py",
        "(-one.priority, one.name)",
        "(one.priority, one.name)",
        CHOICE,
    ),
    Bug(
        "a policy that breaks a rule leaves its nodes to the next one",
        "failover/limits/policies.py",
        "if selects(one.selector, labels)",
        "if one.policy and selects(one.selector, labels)",
        CHOICE,
    ),
    Bug(
        "a policy's status is written again although it has not changed",
        "failover/limits/policies.py",
        "return None if after == before else after",
        "return after",
        CHOICE,
    ),
    Bug(
        "a password may stand in a policy",
        "model/fence_policy_rules.py",
        "if not secret and name.endswith(SECRETS)",
        "if not secret and name == 'action'",
        READ,
    ),
    Bug(
        "a parameter may stand in two places",
        "model/fence_policy_rules.py",
        "if names[name] > 1",
        "if names[name] > 2",
        READ,
    ),
    Bug(
        "two fencers may have one name",
        "model/fence_policy_rules.py",
        "        if count > 1:",
        "        if count > 2:",
        READ,
    ),
    Bug(
        "the API server takes a fencer without a device",
        "manifests/policy_rules.py",
        '"Fencer": [_exactly_one("agent", "redfish", "ec2", "manual")],',
        "",
        SHIPPED,
    ),
    Bug(
        "the rules of a field replace those of its struct",
        "manifests/structural.py",
        "[*schema.get(_RULES, ()), *rules]",
        "rules",
        SHIPPED,
    ),
    Bug(
        "the API server fills in nothing",
        "manifests/structural.py",
        "    defaults: bool = True",
        "    defaults: bool = False",
        SHIPPED,
    ),
    Bug(
        "the controller may read every Secret",
        "manifests/grants.py",
        '"the credentials of fences, read when they are needed", "", namespace)',
        '"the credentials of fences, read when they are needed")',
        SHIPPED,
    ),
    Bug(
        "a controller that detaches nothing may delete attachments",
        "manifests/grants.py",
        "if detach else _FOLLOW",
        "",
        SHIPPED,
    ),
    Bug(
        "a controller that may detach volumes is not told to",
        "manifests/deployment.py",
        """*(["--attach-detach=own"] if detach else []),""",
        "",
        SHIPPED,
    ),
    Bug(
        "a request in another namespace counts as allowed",
        "manifests/rbac.py",
        "and grant.namespace in (ANYWHERE, asked.namespace)",
        "",
        RBAC,
    ),
    Bug(
        "a request for another name counts as allowed",
        "manifests/rbac.py",
        "        and named\n",
        "",
        RBAC,
    ),
    Bug(
        "the first of two options of kube-controller-manager counts",
        "model/controller_manager.py",
        "for argument in self.arguments:",
        "for argument in reversed(self.arguments):",
        ("tests/core/test_controller_manager.py",),
    ),
    Bug(
        "the machine goes before its last word is told",
        "graceful/run.py",
        "            await self._last_word()\n",
        "",
        RUN,
    ),
    Bug(
        "every pod that has ended counts as unmounted",
        "graceful/seeing_off.py",
        "if await self._node.pod_ended(self._live, self._codes):",
        "if await self._node.pod_ended(self._live, self._codes) or True:",
        RUN,
    ),
    Bug(
        "a pod that has ended counts as gone, mounted or not",
        "model/node_shutdown_object.py",
        "return self.unmounted_time is not None and self.outcome",
        "return self.outcome",
        LAST_WORD,
    ),
    Bug(
        "a new shutdown's record keeps the pods of the last one",
        "adapters/kube/shutdown_records.py",
        "        if isinstance(event, Started):\n            self._events = []",
        "        if isinstance(event, Started):\n            self._events = self._events[:-1]",
        LAST_WORD,
    ),
    Bug(
        "a shutdown that was called off while no agent was there goes on for ever in the API",
        "adapters/kube/shutdown_records.py",
        "elif not self._events and not isinstance(event, Cancelled):",
        "elif not self._events:",
        LAST_WORD,
    ),
    Bug(
        "an API server that refuses the record holds the shutdown up",
        "adapters/kube/shutdown_records.py",
        "        except (Refused, ApiNotPermitted) as error:\n            self._failed(str(error))",
        "        except (Refused, ApiNotPermitted) as error:\n            return self._failed(str(error))",
        LAST_WORD,
    ),
    Bug(
        "the announcement does not wait for the record",
        "adapters/kube/shutdown_records.py",
        "            await any_done(writing)\n",
        "",
        LAST_WORD,
    ),
]
