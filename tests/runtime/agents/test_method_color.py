"""Which of an agent's methods is called, in every way people write agents."""

import asyncio
import functools
import types

import pytest

from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.agents.agent import Agent
from troth.runtime.agents.method_color import decide


class SyncOnly(Agent):
    def step(self, conversation):
        return "sync step"


class AsyncOnly(Agent):
    async def astep(self, conversation):
        return "async step"


class Both(Agent):
    def step(self, conversation):
        return "sync step"

    async def astep(self, conversation):
        return "async step"


class StepOfBoth(Both):
    def step(self, conversation):
        return "the subclass's step"


class AstepOfBoth(Both):
    async def astep(self, conversation):
        return "the subclass's astep"


class Nothing(Agent):
    pass


class AsyncStep(Agent):
    async def step(self, conversation):
        return "never"


class PlainAstep(Agent):
    def astep(self, conversation):
        return "never"


class Forwarding(SyncOnly):
    async def astep(self, conversation):
        return await super().astep(conversation)


class Offloading:
    async def astep(self, conversation):
        return await asyncio.to_thread(self.step, conversation)


class Mixed(Offloading, SyncOnly):
    pass


class MixedBehind(SyncOnly, Offloading):
    pass


class CopyOfShim(SyncOnly):
    @functools.wraps(Agent.astep)
    async def astep(self, conversation):
        return await Agent.astep(self, conversation)


class Alias(SyncOnly):
    astep = Agent.astep


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Decorated(Agent):
    @traced
    async def astep(self, conversation):
        return "async step"


class Proxy:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Duck:
    """Not derived from anything of ours."""

    def step(self, conversation):
        return "quack"


class AsyncDuck:
    async def astep(self, conversation):
        return "quack"


class PropertyStep(Agent):
    @property
    def step(self):
        return lambda conversation: "surprise"


def with_instance_astep():
    agent = SyncOnly()

    async def astep(self, conversation):
        return "the instance's astep"

    agent.astep = types.MethodType(astep, agent)
    return agent


def with_instance_step():
    agent = AsyncOnly()
    agent.step = lambda conversation: "the instance's step"
    return agent


class GeneratorStep(Agent):
    def step(self, conversation):
        yield conversation.say("never said")


class GeneratorAstep(Agent):
    async def astep(self, conversation):
        yield await conversation.asay("never said")


class StepOfNothing(Agent):
    def step(self):
        raise AssertionError


class StepOfTwo(Agent):
    def step(self, conversation, other):
        raise AssertionError


@pytest.mark.parametrize(
    ("agent", "color"),
    [
        pytest.param(SyncOnly(), Color.SYNC, id="only step"),
        pytest.param(AsyncOnly(), Color.ASYNC, id="only astep"),
        pytest.param(Both(), Color.EITHER, id="both, in one class"),
        pytest.param(StepOfBoth(), Color.SYNC, id="subclass of both overrides only step: that step is called"),
        pytest.param(AstepOfBoth(), Color.ASYNC, id="subclass of both overrides only astep"),
        pytest.param(Forwarding(), Color.ASYNC, id="astep that forwards to the base"),
        pytest.param(Mixed(), Color.ASYNC, id="mixin before, with astep"),
        pytest.param(MixedBehind(), Color.SYNC, id="mixin behind, with astep"),
        pytest.param(CopyOfShim(), Color.SYNC, id="wrapped copy of the base's astep"),
        pytest.param(Alias(), Color.SYNC, id="alias of the base's astep"),
        pytest.param(Decorated(), Color.ASYNC, id="astep behind a sync decorator"),
        pytest.param(with_instance_astep(), Color.ASYNC, id="astep set on the instance"),
        pytest.param(with_instance_step(), Color.SYNC, id="step set on the instance"),
        pytest.param(Proxy(SyncOnly()), Color.SYNC, id="proxy of a sync agent"),
        pytest.param(Proxy(AsyncOnly()), Color.ASYNC, id="proxy of an async agent"),
        pytest.param(Proxy(Proxy(StepOfBoth())), Color.SYNC, id="proxy of a proxy"),
        pytest.param(Duck(), Color.SYNC, id="a duck with step"),
        pytest.param(AsyncDuck(), Color.ASYNC, id="a duck with astep"),
    ],
)
def test_the_agents_own_method_is_found(agent, color):
    """The more derived of `step` and `astep` wins, wherever it was written."""
    way = decide(agent)
    assert way.color is color
    assert "`step`" in way.because or "`astep`" in way.because


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        pytest.param(Nothing(), "neither a `step` nor an `astep`", id="neither"),
        pytest.param(object(), "neither a `step` nor an `astep`", id="not an agent at all"),
        pytest.param(AsyncStep(), r"`AsyncStep.step` is `async def`(.|\n)*`astep`", id="async def step"),
        pytest.param(PlainAstep(), r"`PlainAstep.astep` is a plain `def`(.|\n)*`step`", id="def astep"),
        pytest.param(SyncOnly, "is a class, not an agent", id="the class itself"),
        pytest.param(PropertyStep(), "cannot be determined", id="a property"),
        pytest.param(GeneratorStep(), "`GeneratorStep.step` is a generator function", id="a generator"),
        pytest.param(GeneratorAstep(), "`GeneratorAstep.astep` is a generator function", id="an async generator"),
        pytest.param(StepOfNothing(), "cannot be called with a conversation: too many", id="no parameter for it"),
        pytest.param(StepOfTwo(), "missing a required argument: 'other'", id="a parameter too many"),
    ],
)
def test_what_could_do_nothing_is_refused(agent, says):
    """Before anything runs, and naming both methods where they were mixed up."""
    with pytest.raises(MisuseError, match=says):
        decide(agent)


def test_nothing_is_run():
    """Deciding does not step."""

    class Loud(Agent):
        def step(self, conversation):
            raise AssertionError("ran")

    assert decide(Loud()).color is Color.SYNC


def test_the_other_color_follows():
    """An async caller of a sync agent reaches its `step`, in a worker thread."""
    assert asyncio.run(SyncOnly().astep(None)) == "sync step"
    assert asyncio.run(Forwarding().astep(None)) == "sync step"
