"""A machine with a power button, for the tutorial: systemd-logind itself, on a bus of its own, able to turn off nothing.

Run it with the Python that has lastcall: ``.venv/bin/python docs/examples/machine.py``.
"""

import asyncio
import sys

import click

from lastcall_lab.private_logind import PrivateLogind


def main() -> None:
    """Until the power button was pressed and the machine would be off."""
    if reason := PrivateLogind.why_not():
        sys.exit(f"a private logind cannot run here: {reason}")
    with PrivateLogind() as logind:
        click.echo("The machine is on. In another terminal:\n")
        click.echo(f"  export DBUS_SYSTEM_BUS_ADDRESS={logind.address}")
        click.echo(f"  export LOGIND_ROOT={logind.root}\n")
        click.prompt("Press Enter to press the power button", default="", show_default=False, prompt_suffix=" ")
        asyncio.run(logind.power_off())
        click.echo("logind has said that the machine shuts down, and waits for the locks.")
        call = asyncio.run(logind.wait_for_start(seconds=3600))
        click.echo(f"logind starts {call.arguments[0]}: the machine would be off now.")


if __name__ == "__main__":
    main()
