"""Three Redis pods on three nodes of a lab, with or without a guard."""

from support.guard import redis_set
from support.guard.guarded_lab import GuardedLab, wait


class GuardedRedis(GuardedLab):
    """Those of ``redis_set``."""

    name = "redis"

    def __init__(self, directory, *, guarded):
        super().__init__(directory, guarded=guarded)
        self.peers = directory / "peers"
        self.peers.mkdir()

    def start(self, **how):
        """``how`` is the StatefulSet's."""
        return super().start(redis_set.stateful_set(self.peers, **how))

    def is_whole(self):
        return self.count_ready() == 3 and len(self.masters()) == 1

    def masters(self):
        return redis_set.find_masters(self.peers)

    def leading_pod(self):
        [master] = self.masters()
        return next(name for name, pod in self.pods().items() if pod["status"].get("podIP") == master)

    def lead_by(self, name):
        addresses = {one: pod["status"]["podIP"] for one, pod in self.pods().items()}
        master = self.leading_pod()
        if name == master:
            return
        redis_set.ask(addresses[master], "failover", "to", addresses[name], redis_set.PORT, "timeout", 5000)
        wait(lambda: self.masters() == [addresses[name]], f"master {name}")
        for one in (addresses[other] for other in addresses if other != name):
            redis_set.ask(one, "replicaof", addresses[name], redis_set.PORT)
            wait(lambda one=one: redis_set.ask(one, "role")[3] == "connected", "replica that follows")

    def clear(self):
        [master] = self.masters()
        redis_set.ask(master, "flushall", seconds=30.0)

    def client(self, size=1):
        """A client that writes values of so many bytes."""
        return redis_set.RedisWriter(self.peers, size=size)
