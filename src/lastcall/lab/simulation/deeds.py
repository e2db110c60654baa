"""What each verb does."""

from collections.abc import Mapping

from lastcall.lab.power import Switch
from lastcall.lab.simulation import api_deeds, machine_deeds, people_deeds, program_deeds
from lastcall.lab.simulation.doing import Deed, on_each
from lastcall.lab.simulation.rolling import roll
from lastcall.lab.simulation.scenario import Verb
from lastcall.lab.simulation.weather import Condition

DEEDS: Mapping[Verb, Deed] = {
    Verb.REBOOT: on_each(machine_deeds.reboot),
    Verb.SHUT_DOWN: on_each(machine_deeds.shut_down),
    Verb.CANCEL: on_each(machine_deeds.cancel),
    Verb.POWER_CUT: on_each(machine_deeds.cut_power),
    Verb.HANG: on_each(machine_deeds.struck_by(Switch.HUNG)),
    Verb.PARTITION: on_each(machine_deeds.struck_by(Switch.PARTITIONED)),
    Verb.NO_STORAGE: on_each(machine_deeds.struck_by(Switch.NO_STORAGE)),
    Verb.SPOT: on_each(machine_deeds.reclaim),
    Verb.ROLL: roll,
    Verb.CLOCK_STEP: on_each(machine_deeds.step_clock),
    Verb.DISK_FULL: on_each(machine_deeds.fill_disk),
    Verb.KILL_AGENT: on_each(program_deeds.kill_agent, at_once=False),
    Verb.KILL_HOLDER: on_each(program_deeds.kill_holder),
    Verb.RESTART_LOGIND: on_each(program_deeds.restart_logind),
    Verb.LOSE_BUS: on_each(program_deeds.lose_bus),
    Verb.RUNTIME_AWAY: on_each(program_deeds.runtime_away),
    Verb.DRAIN: on_each(people_deeds.drain),
    Verb.OUT_OF_SERVICE: on_each(people_deeds.taint_out_of_service),
    Verb.API_DOWN: api_deeds.down,
    Verb.API_RESTART: api_deeds.restart,
    Verb.API_COMPACT: api_deeds.compact,
    Verb.KILL_CONTROLLERS: api_deeds.kill_controllers,
    Verb.API_ERRORS: api_deeds.weather(lambda part, nodes: Condition(programs=nodes, refused=part)),
    Verb.API_SLOW: api_deeds.weather(lambda seconds, nodes: Condition(programs=nodes, slow=seconds)),
    Verb.WATCH_LATE: api_deeds.weather(lambda seconds, nodes: Condition(programs=nodes, late=seconds)),
    Verb.WATCH_DOUBLE: api_deeds.weather(lambda part, nodes: Condition(programs=nodes, doubled=part)),
    Verb.WATCH_TORN: api_deeds.weather(lambda part, nodes: Condition(programs=nodes, torn=part)),
    Verb.WATCH_SILENT: api_deeds.weather(lambda _, nodes: Condition(programs=nodes, silent=True)),
}
