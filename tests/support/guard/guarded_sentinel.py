"""Three pods with Redis and a Sentinel each on three nodes of a lab, with or without a guard.

A server that starts follows the master that the Sentinels name. Before there is one it is that of the first pod.
"""

from support.guard import redis_set
from support.guard.guarded_lab import RUN, guard_policy
from support.guard.guarded_redis import GuardedRedis

NAME = "redis-sentinel"
FIND = r"""
set -eu
first="$PEERS/redis-sentinel-0"
find_master() {
  for file in "$PEERS"/*; do
    [ -e "$file" ] && [ "$(basename "$file")" != "$POD_NAME" ] || continue
    found=$(timeout 2 redis-cli -h "$(cat "$file")" -p 26379 sentinel get-master-addr-by-name shop 2>/dev/null | head -1)
    if [ -n "$found" ]; then echo "$found"; return; fi
  done
}
"""
SERVER = r"""
serve() { run redis-server --bind "$POD_IP" --port 6379 --save '' --appendonly no --dir "$DATA" --replica-announce-ip "$POD_IP" --repl-timeout 5 \
  --repl-ping-replica-period 1 --repl-diskless-sync-delay 0 --protected-mode no --shutdown-timeout "$SHUTDOWN" "$@"; exit; }
master=$(find_master)
echo "$POD_IP" > "$PEERS/$POD_NAME"
if [ -z "$master" ] && [ "$POD_NAME" = redis-sentinel-0 ]; then serve; fi
while [ -z "$master" ]; do sleep 0.2; master=$(cat "$first" 2>/dev/null || true); done
serve --replicaof "$master" 6379
"""
SENTINEL = r"""
file="$DATA/sentinel-$POD_NAME.conf"
if [ ! -e "$file" ]; then
  while [ ! -e "$first" ]; do sleep 0.2; done
  { echo "sentinel monitor shop $(cat "$first") 6379 2"; echo "sentinel down-after-milliseconds shop 3000"
    echo "sentinel failover-timeout shop 10000"; } > "$file"
fi
sed -i '/announce-ip/d' "$file"
echo "sentinel announce-ip $POD_IP" >> "$file"
exec redis-server "$file" --sentinel --bind "$POD_IP" --port 26379
"""


class GuardedSentinel(GuardedRedis):
    """What a Sentinel knows outlives its pod, as on a volume."""

    name = NAME

    def policies(self):
        policy = guard_policy(NAME, NAME)
        policy["spec"]["provider"][NAME] = {"masterName": "shop"}
        return [policy]

    def start(self, **how):
        made = redis_set.stateful_set(self.peers, name=NAME, **how)
        [server] = made["spec"]["template"]["spec"]["containers"]
        sentinel = {
            "name": "sentinel",
            "image": "none",
            "command": ["bash", "-c", FIND + SENTINEL],
            "env": server["env"],
        }
        server["command"] = ["bash", "-c", RUN + FIND + SERVER]
        made["spec"]["template"]["spec"]["containers"].append(sentinel)
        return super(GuardedRedis, self).start(made)
