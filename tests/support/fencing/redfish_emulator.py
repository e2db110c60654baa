"""The Redfish emulator of sushy-tools as a process of its own, on a free port of the loopback.

Power changes ``delay`` seconds after it was asked for (sushy-tools' own choice is 1 to 11 s by chance), and every answer
takes ``latency`` seconds. ``pause`` makes a dead BMC of it: connections are taken and nothing is answered. Several
emulators may run side by side; this file is also the program that each of them runs.
"""

import base64
import ipaddress
import json
import ssl
import sys
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.fencing.emulator import Emulator, listens, running

USER, PASSWORD = "admin", "correct horse 'battery'"
MACHINES = {
    "worker-1": "7b21e7c4-3a4f-4d5e-9c1d-6f0d9a5e0001",
    "worker-2": "7b21e7c4-3a4f-4d5e-9c1d-6f0d9a5e0002",
}
"""Names and UUIDs of the systems; the UUID is also the system's id."""


class RedfishEmulator(Emulator):
    """``directory`` holds its files; ``machines`` (name -> UUID) are all on at first."""

    def __init__(self, directory, *, machines=MACHINES, delay=0.0, latency=0.0):
        self.certificate = directory / "certificate.pem"
        self._delay, self._latency = directory / "delay", directory / "latency"
        self.slow(delay=delay, latency=latency)
        settings = directory / "settings.json"
        settings.write_text(json.dumps({"directory": str(directory), "machines": machines}))
        _certify(directory)
        _protect(directory)
        super().__init__("support.fencing.redfish_emulator", directory, settings)
        self.address = f"https://127.0.0.1:{self.port}"

    def slow(self, *, delay=0.0, latency=0.0):
        """From now on."""
        self._delay.write_text(str(delay))
        self._latency.write_text(str(latency))

    def power(self, name, machines=MACHINES):
        """What a machine's power is."""
        return self._ask(f"/redfish/v1/Systems/{machines[name]}")["PowerState"]

    def switch(self, name, reset="On", machines=MACHINES):
        """Without a fence, and by the delay of the moment."""
        self._ask(f"/redfish/v1/Systems/{machines[name]}/Actions/ComputerSystem.Reset", {"ResetType": reset})

    def _ask(self, path, body=None):
        context = ssl.create_default_context(cafile=self.certificate)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data)
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, context=context, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None


def redfish_emulator(**how):
    """One that runs, and is ended."""
    return running(RedfishEmulator, **how)


def _certify(directory):
    """A key and a certificate for 127.0.0.1, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bmc")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "key.pem").write_bytes(key.private_bytes(*plain))


def _protect(directory):
    import bcrypt

    secret = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (directory / "users").write_text(f"{USER}:{secret}\n")


def _serve(settings):
    """The program: says its port on its standard output when it listens."""
    from sushy_tools.emulator import main
    from sushy_tools.emulator.resources.systems import fakedriver
    from werkzeug.serving import make_server

    directory = Path(settings["directory"])

    class Delay:
        @staticmethod
        def randint(least, most):
            return float((directory / "delay").read_text())

    fakedriver.random = Delay
    systems = [
        {"uuid": uuid, "name": name, "power_state": "On", "external_notifier": False, "nics": []}
        for name, uuid in settings["machines"].items()
    ]
    configuration = {
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
        "SUSHY_EMULATOR_STATE_DIR": str(directory),
        "SUSHY_EMULATOR_AUTH_FILE": str(directory / "users"),
    }
    file = directory / "emulator.conf"
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in configuration.items()))
    main.app.configure(config_file=str(file))
    answer = main.app.wsgi_app

    def late(environ, start_response):
        time.sleep(float((directory / "latency").read_text()))
        return answer(environ, start_response)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate.pem", directory / "key.pem")
    server = make_server("127.0.0.1", 0, late, threaded=True, ssl_context=context)
    listens(server.server_port)
    server.serve_forever()


if __name__ == "__main__":
    _serve(json.loads(Path(sys.argv[1]).read_text()))
