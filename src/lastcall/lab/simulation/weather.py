"""What becomes of requests on their way to the API server, and of answers on their way back."""

from collections.abc import Mapping

from lastcall.adapters.kube.transport import Answer, Transport
from lastcall.errors import Unavailable


class Weather:
    """What is wrong at the moment. ``down``: the server does not run."""

    def __init__(self) -> None:
        self.down = False


class Exposed:
    """``transport.Transport`` of one program, under the weather."""

    def __init__(self, transport: Transport, weather: Weather, program: str) -> None:
        self._transport = transport
        self._weather = weather
        self._program = program

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """One answer, or none."""
        if self._weather.down:
            raise Unavailable("the API server does not run")
        return await self._transport.request(method, target, headers, body, stream=stream)

    def close(self) -> None:
        """Gives up all connections."""
        self._transport.close()
