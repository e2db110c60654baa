"""Clusters of users, as kubectl tells of them, and how a scenario for one begins."""

import json
from pathlib import Path

import yaml

STATES = Path(__file__).parents[2] / "states"
KUBEADM = (STATES / "kubeadm.yaml").read_bytes()
K3S = (STATES / "k3s.yaml").read_bytes()

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: Scenario\nmetadata: {name: mine}\n"


def changed(data, *changes):
    """The file with some of its items changed; ``changes`` are pairs of a name and a function."""
    whole = yaml.safe_load(data)
    for item in whole["items"]:
        for name, change in changes:
            if item["metadata"]["name"] == name:
                change(item)
    return json.dumps(whole).encode()
