"""What each verb does."""

from collections.abc import Mapping

from lastcall.lab.power import Switch
from lastcall.lab.simulation.deeds import api, failover, machines, people, policies, programs
from lastcall.lab.simulation.deeds.doing import Deed, on_each
from lastcall.lab.simulation.deeds.rolling import roll
from lastcall.lab.simulation.scenario import Verb
from lastcall.lab.simulation.weather import Condition

DEEDS: Mapping[Verb, Deed] = {
    Verb.REBOOT: on_each(machines.reboot),
    Verb.SHUT_DOWN: on_each(machines.shut_down),
    Verb.CANCEL: on_each(machines.cancel),
    Verb.POWER_CUT: on_each(machines.cut_power),
    Verb.HANG: on_each(machines.struck_by(Switch.HUNG)),
    Verb.PARTITION: on_each(machines.struck_by(Switch.PARTITIONED)),
    Verb.NO_STORAGE: on_each(machines.struck_by(Switch.NO_STORAGE)),
    Verb.SPOT: on_each(machines.reclaim),
    Verb.ROLL: roll,
    Verb.CLOCK_STEP: on_each(machines.step_clock),
    Verb.CLOCK_DRIFT: on_each(machines.drift_clock),
    Verb.DISK_SLOW: on_each(machines.slow_disk),
    Verb.DATAGRAMS_DOUBLE: machines.repeat_datagrams,
    Verb.DISK_FULL: on_each(machines.fill_disk),
    Verb.KILL_AGENT: on_each(programs.kill_agent, at_once=False),
    Verb.KILL_HOLDER: on_each(programs.kill_holder),
    Verb.RESTART_LOGIND: on_each(programs.restart_logind),
    Verb.LOSE_BUS: on_each(programs.lose_bus),
    Verb.RUNTIME_AWAY: on_each(programs.runtime_away),
    Verb.DRAIN: on_each(people.drain),
    Verb.OUT_OF_SERVICE: on_each(people.taint_out_of_service),
    Verb.PAUSE_FAILOVER: failover.pause,
    Verb.CLOCK_FAILOVER: failover.step_clock,
    Verb.POLICY_SUSPECT: policies.suspect_after,
    Verb.POLICY_OBSERVE: policies.observe,
    Verb.KILL_FAILOVER: failover.kill,
    Verb.STOP_FAILOVER: failover.stop,
    Verb.CUT_FAILOVER: failover.cut,
    Verb.BMC_SAYS_ON: on_each(failover.bmc(says=True)),
    Verb.BMC_SAYS_OFF: on_each(failover.bmc(says=False)),
    Verb.BMC_DEAF: on_each(failover.bmc(deaf=True)),
    Verb.BMC_STUCK: on_each(failover.bmc(stuck=True)),
    Verb.BMC_LATE: on_each(failover.late),
    Verb.BMC_WIRED: on_each(failover.wired),
    Verb.API_DOWN: api.down,
    Verb.API_RESTART: api.restart,
    Verb.API_COMPACT: api.compact,
    Verb.ETCD_RESTORE: api.restore,
    Verb.PAUSE_CONTROLLERS: api.pause_controllers,
    Verb.KILL_CONTROLLERS: api.kill_controllers,
    Verb.API_ERRORS: api.weather(lambda part, nodes: Condition(programs=nodes, refused=part)),
    Verb.REQUESTS_LOST: api.weather(lambda _, nodes: Condition(programs=nodes, unheard=True)),
    Verb.ANSWERS_LOST: api.weather(lambda _, nodes: Condition(programs=nodes, unanswered=True, silent=True)),
    Verb.STALE_LISTS: api.another_server,
    Verb.STALE_STARTS: api.weather(lambda seconds, nodes: Condition(programs=nodes, stale_starts=seconds)),
    Verb.API_SLOW: api.weather(lambda seconds, nodes: Condition(programs=nodes, slow=seconds)),
    Verb.API_TORN: api.weather(lambda part, nodes: Condition(programs=nodes, halved=part)),
    Verb.WATCH_LATE: api.weather(lambda seconds, nodes: Condition(programs=nodes, late=seconds)),
    Verb.WATCH_DOUBLE: api.weather(lambda part, nodes: Condition(programs=nodes, doubled=part)),
    Verb.WATCH_TORN: api.weather(lambda part, nodes: Condition(programs=nodes, torn=part)),
    Verb.WATCH_LOST: api.lose,
    Verb.WATCH_SILENT: api.weather(lambda _, nodes: Condition(programs=nodes, silent=True)),
}
