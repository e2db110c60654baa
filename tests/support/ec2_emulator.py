"""EC2 as moto emulates it, in a process of its own on a free port of the loopback; this file is also its program.

It takes any credentials, and switches at once.
"""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

REGION = "eu-central-1"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG"
IMAGE = "ami-12c6146b"


class Ec2Emulator:
    def __init__(self):
        with TemporaryFile() as log:
            command = [sys.executable, "-W", "ignore", str(Path(__file__)), "serve"]
            environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
            line = self._process.stdout.readline()
            if not line:
                self.close()
                log.seek(0)
                raise RuntimeError(log.read().decode())
        self.endpoint = f"http://127.0.0.1:{int(line)}"
        self._client = None

    @property
    def client(self):
        """Somebody else's, who makes and looks at instances."""
        if self._client is None:
            import boto3

            self._client = boto3.client(
                "ec2",
                region_name=REGION,
                endpoint_url=self.endpoint,
                aws_access_key_id=KEY,
                aws_secret_access_key=SECRET,
            )
        return self._client

    def instance(self):
        """A new one that runs, by its providerID."""
        made = self.client.run_instances(ImageId=IMAGE, MinCount=1, MaxCount=1)["Instances"][0]
        return f"aws:///{made['Placement']['AvailabilityZone']}/{made['InstanceId']}"

    def state(self, provider_id):
        asked = [provider_id.rpartition("/")[2]]
        [found] = self.client.describe_instances(InstanceIds=asked)["Reservations"][0]["Instances"]
        return found["State"]["Name"]

    def start(self, provider_id):
        self.client.start_instances(InstanceIds=[provider_id.rpartition("/")[2]])

    def pause(self):
        """Nothing is answered any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        if getattr(self, "_client", None) is not None:
            self._client.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def ec2_emulator():
    """One that runs, and is ended."""
    emulator = Ec2Emulator()
    try:
        yield emulator
    finally:
        emulator.close()


def _serve():
    """The program: says its port on its standard output when it listens."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve()
