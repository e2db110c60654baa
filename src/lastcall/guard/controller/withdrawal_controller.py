"""Withdraws the guard's webhooks while no guard answers, and puts them back: work of the controller that leads."""

import logging

from lastcall import names
from lastcall.errors import ApiNotPermitted, Conflict, LastcallError
from lastcall.guard.decisions.webhook_withdrawal import (
    EndpointHistory,
    WithdrawalDecision,
    WithdrawalStep,
    decide_withdrawal,
)
from lastcall.model.guard_webhooks import read_webhook_state
from lastcall.ports.guard_webhooks import Configuration, GuardWebhooks
from lastcall.ports.node import Clock

LOOK_SECONDS = 5.0
"""Between two looks at the endpoints."""

ABSENT_SECONDS = 30.0
"""Between two looks as long as no guard is installed, or the right to look is missing."""

log = logging.getLogger(__name__)


class WithdrawalController:
    """``after`` as in ``decide_withdrawal``. The state is in the configuration, so any later leader can go on."""

    def __init__(self, webhooks: GuardWebhooks, clock: Clock, *, after: float) -> None:
        self._webhooks = webhooks
        self._clock = clock
        self._after = after
        self._history = EndpointHistory()
        self.sentence = ""
        """What was found and done last."""
        self.is_withdrawn = False
        """Whether the webhooks are withdrawn, as far as this process knows while it leads."""

    async def run(self) -> None:
        """Runs until cancelled; once more in the next term."""
        try:
            while True:
                await self._clock.sleep(await self._run_round())
        finally:
            self.is_withdrawn = False

    async def _run_round(self) -> float:
        """One look and what follows from it; the seconds until the next one."""
        try:
            return await self._look()
        except Conflict:
            self._tell("the configuration was changed by another client meanwhile")
        except ApiNotPermitted as error:
            self._tell(f"not looked after: {error}", needs_person=True)
            return ABSENT_SECONDS
        except LastcallError as error:
            self._tell(f"not known whether a guard answers: {error}", needs_person=True)
        except Exception:
            log.exception("the guard's webhooks were not looked after: an internal error occurred")
        return LOOK_SECONDS

    async def _look(self) -> float:
        configuration = await self._webhooks.read_configuration()
        if configuration is None:
            self.is_withdrawn = False
            self._tell("no guard is installed")
            return ABSENT_SECONDS
        is_ready = await self._webhooks.has_ready_endpoint()
        self._history = self._history.add_look(is_ready=is_ready, now=self._clock.boottime())
        state = read_webhook_state(configuration)
        self.is_withdrawn = not state.in_force
        decision = decide_withdrawal(state, self._history, after=self._after)
        await self._carry_out(decision, configuration)
        self._tell(decision.sentence, needs_person=decision.needs_person)
        return LOOK_SECONDS

    async def _carry_out(self, decision: WithdrawalDecision, configuration: Configuration) -> None:
        if decision.step is WithdrawalStep.WITHDRAW:
            await self._webhooks.withdraw(configuration)
            self.is_withdrawn = True
            log.warning("the guard's webhooks are withdrawn: %s", decision.sentence)
            await self._webhooks.write_event(configuration, names.E_WITHDRAWN, decision.sentence, is_warning=True)
        elif decision.step is WithdrawalStep.RESTORE:
            await self._webhooks.restore(configuration)
            self.is_withdrawn = False
            log.warning("the guard's webhooks are in force: %s", decision.sentence)
            await self._webhooks.write_event(configuration, names.E_RESTORED, decision.sentence, is_warning=False)

    def _tell(self, sentence: str, *, needs_person: bool = False) -> None:
        """Logs a sentence when it is another one, but for the seconds in it."""
        if _without_numbers(sentence) != _without_numbers(self.sentence):
            log.log(logging.WARNING if needs_person else logging.INFO, "the guard's webhooks: %s", sentence)
        self.sentence = sentence


def _without_numbers(sentence: str) -> str:
    return "".join(one for one in sentence if not one.isdecimal())
