"""An API server and some controllers in virtual time, without nodes: what a kubelet would do, a test does.

The controllers have the rights that they have in the lab, and no more.
"""

import functools
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.control_plane import identities
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner

SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


class LabCluster:
    """Verbs for tests; everything is in the namespace ``default``."""

    def __init__(self, clock, controllers, seed=1, *, optional=()):
        self.clock, self.random = clock, Random(seed)
        roles = identities.cluster_roles()
        self.server = ApiServer(
            clock, Random(seed), authorization=AuthorizationMode.RBAC, roles=roles, optional=optional
        )
        self.client = Client(InProcessTransport(self.server), manager="test")
        writing = identities.client_by_controller(self._controller)
        hands = ClusterApiClient(self._controller(identities.MANAGER), clock, self.random, writing=writing)
        self.runner = ControllerRunner(hands, clock, controllers)

    def _controller(self, user):
        return Client(InProcessTransport(self.server, user), manager="kube-controller-manager")

    async def begin(self):
        """What a cluster has once its controllers have run."""
        await self.client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")

    # -- looking, straight into the store ------------------------------------------------------------------------------

    def all(self, resource):
        """All objects of a resource."""
        return [stored.to_object() for stored in self._stored(resource)]

    def count(self, resource):
        """How many there are."""
        return len(self.names(resource))

    def names(self, resource):
        """Their names."""
        return [stored.key.name for stored in self._stored(resource)]

    def get(self, resource, name):
        """One of them; None if there is none."""
        return next((stored.to_object() for stored in self._stored(resource) if stored.key.name == name), None)

    def _stored(self, resource):
        qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        return self.server.store.objects(qualified)

    # -- doing ---------------------------------------------------------------------------------------------------------

    async def create(self, resource, obj, namespace="default"):
        """A new object."""
        return await self.client.create(resource, obj, namespace=namespace)

    async def patch(self, resource, name, body, subresource="", namespace="default"):
        """A merge patch."""
        return await self.client.patch(resource, name, body, namespace=namespace, subresource=subresource)

    async def delete(self, resource, name, namespace="default", **options):
        """A DELETE."""
        return await self.client.delete(resource, name, namespace=namespace, **options)

    async def bind(self, pod, node):
        """As the scheduler does."""
        target = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self.client.create_subresource(PODS, pod, "binding", target, namespace="default")

    async def ready(self, pod, ready=True):
        """The pod runs, and is ready or not."""
        now = timestamp(self.clock.wall())
        said = {"type": "Ready", "status": str(ready), "lastTransitionTime": now}
        await self.patch(PODS, pod, {"status": {"phase": "Running", "conditions": [said]}}, "status")

    async def settle(self, seconds=1.0):
        """Lets the controllers do what they have to do."""
        await self.clock.sleep(seconds)

    async def until(self, condition, seconds=600.0):
        """Waits until something holds."""
        end = self.clock.boottime() + seconds
        while not condition():
            assert self.clock.boottime() < end, "it does not come to that"
            await self.clock.sleep(0.1)


def on_cluster(*controllers):
    """Runs a test with such a cluster."""

    def decorate(test):
        @functools.wraps(test)
        def run():
            async def main():
                cluster = LabCluster(virtual.VirtualClock(), list(controllers))
                await cluster.begin()
                group = OrderedTaskGroup()
                running = group.start(cluster.runner.run(), "controllers")
                try:
                    await test(cluster)
                finally:
                    if running.done():
                        running.result()  # what has ended the controllers says more than what the test then missed
                    await group.cancel()

            virtual.run(main())

        del run.__wrapped__
        return run

    return decorate
