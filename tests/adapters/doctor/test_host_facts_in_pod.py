"""What doctor says of the kubelet in a pod, which does not see the machine's processes."""

from lastcall.adapters.doctor.host_facts import probe_kubelet
from lastcall.doctor.facts import UnknownFact


def test_a_kubelet_that_is_not_seen_is_not_taken_for_none(tmp_path, monkeypatch):
    (tmp_path / "proc").mkdir()
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert probe_kubelet(tmp_path) is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert probe_kubelet(tmp_path) == UnknownFact(reason="in a pod the processes of the machine are not seen")
