"""How `lastcall lab status` shows the machines."""

from lastcall_lab.up.lab_client import show_answer

BUSY = {
    "name": "lab-1",
    "power": "on",
    "bmcFaults": ["deaf"],
    "services": ["default/kubernetes at 127.149.0.1:20443", "shop/site at 127.149.76.59:20080"],
}
QUIET = {"name": "lab-10", "power": "off", "bmcFaults": [], "services": []}


def test_a_line_for_each_service_and_nothing_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show_answer({"nodes": [BUSY, QUIET]}, "text")
    assert capsys.readouterr().out.splitlines() == [
        "NAME     POWER   BMC-FAULTS   SERVICES",
        "lab-1    on      deaf         default/kubernetes at 127.149.0.1:20443",
        "                              shop/site at 127.149.76.59:20080",
        "lab-10   off",
    ]
