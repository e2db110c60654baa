"""The action of each verb."""

from collections.abc import Mapping

from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation.actions import (
    administrators,
    control_plane,
    drains,
    failover,
    fence_policies,
    guards,
    machines,
    programs,
)
from lastcall_lab.simulation.actions.base import ScenarioAction, for_each_machine
from lastcall_lab.simulation.actions.rolling_reboot import reboot_in_turn
from lastcall_lab.simulation.network_faults import NetworkFault
from lastcall_lab.simulation.scenario import Verb

ACTIONS: Mapping[Verb, ScenarioAction] = {
    Verb.REBOOT: for_each_machine(machines.reboot),
    Verb.SHUT_DOWN: for_each_machine(machines.shut_down),
    Verb.CANCEL: for_each_machine(machines.cancel_shutdown),
    Verb.POWER_CUT: for_each_machine(machines.cut_power),
    Verb.HANG: for_each_machine(machines.machine_fault_action(PowerSwitch.HUNG)),
    Verb.PARTITION: for_each_machine(machines.machine_fault_action(PowerSwitch.PARTITIONED)),
    Verb.NO_STORAGE: for_each_machine(machines.machine_fault_action(PowerSwitch.NO_STORAGE)),
    Verb.SPOT: for_each_machine(machines.reclaim_instance),
    Verb.ROLL: reboot_in_turn,
    Verb.CLOCK_STEP: for_each_machine(machines.step_clock),
    Verb.CLOCK_DRIFT: for_each_machine(machines.drift_clock),
    Verb.DISK_SLOW: for_each_machine(machines.slow_disk),
    Verb.DATAGRAMS_DOUBLE: machines.repeat_datagrams,
    Verb.DISK_FULL: for_each_machine(machines.fill_disk),
    Verb.KILL_AGENT: for_each_machine(programs.kill_agent, at_once=False),
    Verb.KILL_KUBELET: for_each_machine(programs.kill_kubelet),
    Verb.START_KUBELET: for_each_machine(programs.start_kubelet),
    Verb.KILL_HOLDER: for_each_machine(programs.kill_holder),
    Verb.RESTART_LOGIND: for_each_machine(programs.restart_logind),
    Verb.LOSE_BUS: for_each_machine(programs.lose_bus),
    Verb.RUNTIME_AWAY: for_each_machine(programs.stop_runtime),
    Verb.DRAIN: for_each_machine(administrators.drain_node),
    Verb.LASTCALL_DRAIN: drains.drain_nodes,
    Verb.KILL_DRAIN: drains.kill_drains,
    Verb.TAKE_RIGHT: drains.take_right,
    Verb.KILL_GUARD: guards.kill_leader,
    Verb.STOP_GUARDS: guards.stop_replicas,
    Verb.APPS_STALL: guards.stall_applications,
    Verb.APPS_SILENT: guards.silence_applications,
    Verb.APPS_SLOW: guards.delay_applications,
    Verb.APPS_FLAP: guards.flap_applications,
    Verb.APPS_FORGET: guards.forget_preparations,
    Verb.APPS_LIE: guards.have_applications_lie,
    Verb.UNCORDON: for_each_machine(administrators.uncordon_node),
    Verb.CORDON: for_each_machine(administrators.cordon_node),
    Verb.OUT_OF_SERVICE: for_each_machine(administrators.taint_out_of_service),
    Verb.PAUSE_FAILOVER: failover.pause_leader,
    Verb.CLOCK_FAILOVER: failover.step_clock,
    Verb.POLICY_SUSPECT: fence_policies.set_suspect_after,
    Verb.POLICY_OBSERVE: fence_policies.set_observe_mode,
    Verb.KILL_FAILOVER: failover.kill_leader,
    Verb.STOP_FAILOVER: failover.stop_replicas,
    Verb.CUT_FAILOVER: failover.cut_off_leader,
    Verb.BMC_SAYS_ON: for_each_machine(failover.bmc_fault_action(says=True)),
    Verb.BMC_SAYS_OFF: for_each_machine(failover.bmc_fault_action(says=False)),
    Verb.BMC_DEAF: for_each_machine(failover.bmc_fault_action(deaf=True)),
    Verb.BMC_STUCK: for_each_machine(failover.bmc_fault_action(stuck=True)),
    Verb.BMC_LATE: for_each_machine(failover.delay_bmc),
    Verb.BMC_WIRED: for_each_machine(failover.miswire_bmc),
    Verb.API_DOWN: control_plane.stop_server,
    Verb.API_RESTART: control_plane.restart_server,
    Verb.API_COMPACT: control_plane.compact_history,
    Verb.ETCD_RESTORE: control_plane.restore_etcd,
    Verb.PAUSE_CONTROLLERS: control_plane.pause_controllers,
    Verb.KILL_CONTROLLERS: control_plane.kill_controllers,
    Verb.API_ERRORS: control_plane.network_fault_action(lambda part, nodes: NetworkFault(programs=nodes, refused=part)),
    Verb.REQUESTS_LOST: control_plane.network_fault_action(lambda _, nodes: NetworkFault(programs=nodes, unheard=True)),
    Verb.ANSWERS_LOST: control_plane.network_fault_action(
        lambda _, nodes: NetworkFault(programs=nodes, unanswered=True, silent=True)
    ),
    Verb.STALE_LISTS: control_plane.switch_to_stale_server,
    Verb.STALE_STARTS: control_plane.network_fault_action(
        lambda seconds, nodes: NetworkFault(programs=nodes, stale_starts=seconds)
    ),
    Verb.API_SLOW: control_plane.network_fault_action(
        lambda seconds, nodes: NetworkFault(programs=nodes, slow=seconds)
    ),
    Verb.API_TORN: control_plane.network_fault_action(lambda part, nodes: NetworkFault(programs=nodes, halved=part)),
    Verb.WATCH_LATE: control_plane.network_fault_action(
        lambda seconds, nodes: NetworkFault(programs=nodes, late=seconds)
    ),
    Verb.WATCH_DOUBLE: control_plane.network_fault_action(
        lambda part, nodes: NetworkFault(programs=nodes, doubled=part)
    ),
    Verb.WATCH_TORN: control_plane.network_fault_action(lambda part, nodes: NetworkFault(programs=nodes, torn=part)),
    Verb.WATCH_LOST: control_plane.lose_watch_events,
    Verb.WATCH_SILENT: control_plane.network_fault_action(lambda _, nodes: NetworkFault(programs=nodes, silent=True)),
}
