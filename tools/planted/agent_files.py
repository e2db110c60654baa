"""Bugs of what the agent reads from files: manifests of static pods, its journals, its configuration."""

from planted.bug import Bug

_STATIC = ("tests/adapters/test_static_pods.py",)

BUGS = [
    Bug(
        "any user of the machine can lock agent.lock",
        "adapters/agent_lock.py",
        "        os.fchmod(descriptor, 0o600)\n",
        "        os.fchmod(descriptor, 0o644)\n",
        ("tests/adapters/test_journal_files.py",),
    ),
    Bug(
        "any user of the machine can lock agent.lock as it is made",
        "adapters/agent_lock.py",
        "os.O_NOFOLLOW, 0o600",
        "os.O_NOFOLLOW, 0o644",
        ("tests/adapters/test_journal_files.py",),
    ),
    Bug(
        "a state directory that was removed is open to all when a journal makes it anew",
        "adapters/journal_files.py",
        "for directory in (self._state_dir, self._directory):",
        "for directory in (self._directory,):",
        ("tests/adapters/test_journal_files.py",),
    ),
    Bug(
        "one odd entry of the directory hides all static pods",
        "adapters/manifests.py",
        "    except OSError as error:\n        raise InvalidInput(path.name,",
        "    except ZeroDivisionError as error:\n        raise InvalidInput(path.name,",
        _STATIC,
    ),
    Bug(
        "a static pod that could not be read once is not read again",
        "adapters/manifests.py",
        "self._seen = None if any(map(_may_pass, errors)) else seen",
        "self._seen = seen",
        _STATIC,
    ),
    Bug(
        "the newest journal is told by the wall clock alone",
        "adapters/journal_files.py",
        "return _begun(path, self._boot), _changed(path), path.stem",
        "return 0.0, _changed(path), path.stem",
        ("tests/adapters/test_journal_files.py",),
    ),
    Bug(
        "a static pod is known by our name of the node alone",
        "adapters/cri/catalogue.py",
        "        candidates += sorted(begun, key=len, reverse=True)\n",
        "        candidates += begun[:0]\n",
        ("tests/core/test_catalogue.py",),
    ),
    Bug(
        "the first manifest that a static pod's name begins with is taken",
        "adapters/cri/catalogue.py",
        "sorted(begun, key=len, reverse=True)",
        "begun",
        ("tests/core/test_catalogue.py",),
    ),
    Bug(
        "a relative path is taken from where the agent was started",
        "wiring_config.py",
        "str(path.absolute().parent / config.static_pod_path)",
        "str(Path(config.static_pod_path).absolute())",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "nobody is told that another staticPodPath waits for the next start",
        "wiring.py",
        "if config.static_pod_path != self._static_pod_path:",
        "if False:",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "a configuration that is not valid keeps the agent from a shutdown that is under way",
        "wiring_config.py",
        "if under_way(journals):",
        "if False:",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "at rest the agent starts with a configuration that is not valid",
        "wiring_config.py",
        "if under_way(journals):",
        "if True:",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "who was started without a configuration never reads it again",
        "wiring.py",
        "                return self.reload()",
        "                return None",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "nobody is told that there is no watchdog without the kubeconfig",
        "wiring.py",
        " and no watchdog until the agent is started again",
        "",
        ("tests/adapters/test_wiring_config.py",),
    ),
    Bug(
        "a kubeconfig that is not there keeps the agent from a shutdown that is under way",
        "wiring.py",
        "                if not under_way(journals):\n",
        "                if True:\n",
        ("tests/adapters/test_wiring_config.py",),
    ),
]
