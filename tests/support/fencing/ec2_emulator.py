"""EC2 as moto emulates it, in a process of its own on a free port of the loopback; this file is also its program.

It takes any credentials, and switches at once.
"""

from support.fencing.emulator import Emulator, listens, running

REGION = "eu-central-1"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG"
IMAGE = "ami-12c6146b"


class Ec2Emulator(Emulator):
    def __init__(self, directory):
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}
        self._client = None
        super().__init__("support.fencing.ec2_emulator", directory, env=environment)
        self.endpoint = f"http://127.0.0.1:{self.port}"

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

    def close(self):
        if self._client is not None:
            self._client.close()
        super().close()


def ec2_emulator():
    """One that runs, and is ended."""
    return running(Ec2Emulator)


def _serve():
    """The program: says its port on its standard output when it listens."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    listens(server.server_port)
    server.serve_forever()


if __name__ == "__main__":
    _serve()
