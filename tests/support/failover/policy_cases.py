"""FencePolicies that are right, and ones that break a rule: for the struct that reads them and for the API server."""

API = "lastcall.dev/v1alpha1"


def policy(name="p", **spec):
    return {"apiVersion": API, "kind": "FencePolicy", "metadata": {"name": name}, "spec": spec}


def fencer(name="f", **parts):
    return {"name": name, **(parts or {"manual": {}})}


def agent(**parts):
    return fencer(agent={"program": "fence_ipmilan", **parts})


def redfish(address=None, system=None):
    where = {"address": address or {"value": "https://bmc"}, "systemID": system or {"value": "1"}}
    return fencer(redfish={**where, "credentials": {"secretName": "bmc"}})


def expression(operator, *values):
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": [*values]}]}


GOOD = {
    "empty": {},
    "everything": {
        "nodeSelector": {"matchLabels": {"role": "worker"}, **expression("In", "a", "b")},
        "priority": -(2**31),
        "mode": "Enforce",
        "suspectAfter": "1m30s",
        "limits": {"minHealthy": "0%", "perDomain": 2, "perHour": 10, "settle": "0s"},
        "domainLabel": "rack",
        "powerOn": "AfterFailover",
        "removeTaint": "Always",
    },
    "shortest": {"suspectAfter": "1s", "limits": {"minHealthy": 0}},
    "longest": {"suspectAfter": "60m", "limits": {"settle": "1h", "minHealthy": "100%"}},
    "labels that are not there": {"nodeSelector": expression("DoesNotExist")},
    "an agent": {
        "fencers": [
            agent(
                parameters={"lanplus": "1"},
                parametersByNode={"plug": {"n1": "7"}},
                parametersFrom={"ip": {"annotation": "example.com/bmc"}, "port": {"label": "bmc-port"}},
                secretParameters={"password": {"name": "bmc", "key": "{node}"}},
            )
        ]
    },
    "secrets by node": {
        "fencers": [
            agent(secretParameters={"passwd": {"name": "{node}", "key": "BMC_{node}.pw"}}),
            fencer("g", ec2={"credentials": {"secretName": "a-{node}.b{node}", "passwordKey": "_p"}}),
        ]
    },
    "redfish by node": {"fencers": [redfish({"byNode": {"n1": "https://b1", "n2": "https://b2:8443/x"}})]},
    "redfish by annotation": {"fencers": [redfish({"annotation": "example.com/bmc"}, {"label": "system"})]},
    "a cloud, else a person": {
        "fencers": [fencer("aws", ec2={"region": "eu-west-1"}, targetCheck="Disabled"), fencer("me", manual={})]
    },
}

BROKEN = [
    ({"suspectAfter": "999ms"}, 'spec.suspectAfter: "999ms": must be 1s to 1h'),
    ({"suspectAfter": "1h1ms"}, 'spec.suspectAfter: "1h1ms": must be 1s to 1h'),
    ({"suspectAfter": "soon"}, 'spec.suspectAfter: "soon": must be text matching regex'),
    ({"suspectAfter": "-40s"}, 'spec.suspectAfter: "-40s": must be text matching regex'),
    ({"limits": {"settle": "61m"}}, 'spec.limits.settle: "61m": must be at most 1h'),
    ({"limits": {"minHealthy": "101%"}}, 'spec.limits.minHealthy: "101%": must be a number from 0, or a percentage'),
    ({"limits": {"minHealthy": "2"}}, 'spec.limits.minHealthy: "2": must be a number from 0, or a percentage'),
    ({"limits": {"minHealthy": -1}}, "spec.limits.minHealthy: -1: must be a number from 0, or a percentage"),
    ({"limits": {"perHour": 0}}, "spec.limits.perHour: 0: must be an integer >= 1"),
    ({"limits": {"perDomain": 0}}, "spec.limits.perDomain: 0: must be an integer >= 1"),
    ({"mode": "enforce"}, 'spec.mode: "enforce": must be Observe, TaintOnly or Enforce'),
    ({"powerOn": True}, "spec.powerOn: true: must be Never or AfterFailover"),
    ({"removeTaint": "always"}, 'spec.removeTaint: "always": must be Ours or Always'),
    (
        {"nodeSelector": expression("in", "a")},
        'spec.nodeSelector.matchExpressions[0].operator: "in": must be In, NotIn, Exists or DoesNotExist',
    ),
    (
        {"fencers": [fencer(), fencer("g", manual={}, targetCheck="no")]},
        'spec.fencers[1].targetCheck: "no": must be Required or Disabled',
    ),
    ({"priority": 2**31}, "spec.priority: 2147483648: must be an integer <= 2147483647"),
    ({"domainLabel": "a/b/c"}, 'spec.domainLabel: "a/b/c": must be text matching regex'),
    (
        {"nodeSelector": expression("In")},
        "spec.nodeSelector.matchExpressions[zone].values: []: at least one value must be given for In",
    ),
    (
        {"nodeSelector": expression("Exists", "a")},
        'spec.nodeSelector.matchExpressions[zone].values: ["a"]: no value may be given for Exists',
    ),
    ({"fencers": [fencer(), fencer()]}, 'spec.fencers: "f": 2 of them have this name, which must be unique'),
    ({"fencers": [fencer("F")]}, 'spec.fencers[0].name: "F": must be text matching regex'),
    ({"fencers": [fencer(delaySeconds=-1, manual={})]}, "spec.fencers[0].delaySeconds: -1: must be an integer >= 0"),
    (
        {"fencers": [fencer(delaySeconds=3601, manual={})]},
        "spec.fencers[0].delaySeconds: 3601: must be an integer <= 3600",
    ),
    ({"fencers": [fencer(attempts=0, manual={})]}, "spec.fencers[0].attempts: 0: must be an integer >= 1"),
    ({"fencers": [fencer(timeoutSeconds=601, manual={})]}, "spec.fencers[0].timeoutSeconds: 601: must be an integer"),
    ({"fencers": [{"name": "f"}]}, "spec.fencers[0]: none of them given: must be exactly one of agent, redfish"),
    (
        {"fencers": [fencer(ec2={}, manual={})]},
        "spec.fencers[0]: ec2 and manual given: must be exactly one of agent, redfish, ec2, manual",
    ),
    (
        {"fencers": [fencer(agent={"program": "/bin/sh"})]},
        'spec.fencers[0].agent.program: "/bin/sh": must be text matching regex',
    ),
    (
        {"fencers": [agent(parameters={"a": "1\naction=on"})]},
        'spec.fencers[0].agent.parameters.a: "1\\naction=on": must be text matching regex',
    ),
    (
        {"fencers": [agent(parameters={"LanPlus": "1"})]},
        'spec.fencers[0].agent.parameters: "LanPlus": must be small letters, digits, - and _, from a letter on',
    ),
    (
        {"fencers": [agent(parametersByNode={"action": {"n": "on"}})]},
        'spec.fencers[0].agent.parametersByNode: "action": is lastcall\'s to give',
    ),
    (
        {"fencers": [agent(parameters={"snmp_priv_passwd": "x"})]},
        'spec.fencers[0].agent.parameters: "snmp_priv_passwd": is secret: must stand in secretParameters',
    ),
    *(
        (
            {"fencers": [agent(parameters={name: "x"})]},
            f'spec.fencers[0].agent.parameters: "{name}": is secret: must stand in secretParameters',
        )
        for name in ("apikey", "access_token", "secret_key", "community")
    ),
    (
        {"fencers": [agent(parameters={"ip": "b"}, parametersFrom={"ip": {"label": "b"}})]},
        'spec.fencers[0].agent.parameters: "ip": must stand in one place only',
    ),
    (
        {"fencers": [agent(parametersFrom={"ip": {}})]},
        "spec.fencers[0].agent.parametersFrom[ip]: none of them given: must be exactly one of annotation, label",
    ),
    (
        {"fencers": [agent(secretParameters={"passwd": {"name": "", "key": "k"}})]},
        'spec.fencers[0].agent.secretParameters.passwd.name: "": must be text of length >= 1',
    ),
    (
        {"fencers": [agent(secretParameters={"passwd": {"name": "lastcall-system/bmc", "key": "k"}})]},
        'spec.fencers[0].agent.secretParameters.passwd.name: "lastcall-system/bmc": must be text matching regex',
    ),
    (
        {"fencers": [agent(secretParameters={"passwd": {"name": "bmc", "key": "{host}"}})]},
        'spec.fencers[0].agent.secretParameters.passwd.key: "{host}": must be text matching regex',
    ),
    (
        {"fencers": [fencer(ec2={"credentials": {"secretName": "AWS"}})]},
        'spec.fencers[0].ec2.credentials.secretName: "AWS": must be text matching regex',
    ),
    (
        {"fencers": [redfish({"value": "bmc.example"})]},
        'spec.fencers[0].redfish.address.value: "bmc.example": must be http:// or https:// with a host',
    ),
    (
        {"fencers": [redfish({"value": "https://root:secret@bmc"})]},
        "spec.fencers[0].redfish.address.value: ",
    ),
    ({"fencers": [redfish({"value": "https://bmc\t/"})]}, "spec.fencers[0].redfish.address.value: "),
    *(
        (
            {"fencers": [redfish(address)]},
            f"spec.fencers[0].redfish.address: {found} given: must be exactly one of value, byNode, annotation, label",
        )
        for address, found in (
            ({"byNode": {}}, "none of them"),
            ({"value": "https://bmc", "label": "x"}, "value and label"),
            ({"value": "https://bmc", "byNode": {"n1": "https://bmc"}}, "value and byNode"),
        )
    ),
    (
        {"fencers": [redfish(None, {"byNode": {}})]},
        "spec.fencers[0].redfish.systemID: none of them given: must be exactly one of value, byNode, annotation",
    ),
    (
        {"fencers": [redfish(None, {"value": "1", "label": "x"})]},
        "spec.fencers[0].redfish.systemID: value and label given: must be exactly one of value, byNode, annotation",
    ),
    ({"fencers": [fencer(ec2={"region": "EU west"})]}, 'spec.fencers[0].ec2.region: "EU west": must be text matching'),
]
"""A ``spec``, and how what is said of it begins."""

TOLD_LATER = [
    (
        {"fencers": [redfish({"byNode": {"n1": "bmc"}})]},
        'spec.fencers[0].redfish.address.byNode[n1]: "bmc": must be http:// or https:// with a host',
    ),
]
"""What an API server lets pass: it would have to look at every node's value."""
