"""What all routes work with: the runtime, agents, workflows, keys and limits of one server."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.assemble import Runtime
from troth.runtime.sagas.saga import Saga
from troth.runtime.store import commit_point
from troth.runtime.store.identity import new_owner, retire
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.registry import Runnable
from troth.server.access.keys import Keys
from troth.server.access.open_connections import OpenConnections
from troth.server.access.sign_ins import SignIns
from troth.server.channels import OpenChannels
from troth.server.direct_route import resolved_by
from troth.server.guard_log import GuardLog
from troth.server.limits import Limits
from troth.server.recovery import Recovery
from troth.server.streams.feeds import Feeds
from troth.server.telemetry import Telemetry
from troth.server.turns import Turns
from troth.server.webhooks import Webhooks

__all__ = ["ContextDep", "ServerContext", "context_of"]

log = logging.getLogger("troth.server")

ENROLL = commit_point("server.enroll", "that this process serves, and which requests it is answering")
BEAT = commit_point("server.beat", "that this process still serves")
RETIRE = commit_point("server.retire", "that this process serves no more")


class ServerContext:
    """One server in one process. Nothing here blocks a loop once `start` is done."""

    def __init__(
        self,
        runtime: Runtime,
        agents: Mapping[str, object],
        workflows: Iterable[Runnable],
        keys: Keys | None,
        limits: Limits,
        webhooks: Webhooks | None = None,
        *,
        content: bool = False,
        pages: bool = True,
    ) -> None:
        self.runtime = runtime
        self.store = runtime.store
        self.agents = {**runtime.agents, **agents}
        self.keys = keys
        self.sign_ins = SignIns(keys)
        self.connections = OpenConnections(keys)
        self.has_pages = pages
        self.guard_log = GuardLog()
        self.limits = limits
        self.workflows: dict[str, LinkedWorkflow] = {}
        self.sagas: dict[str, Saga] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        """What goes on beside the requests that began it."""
        self.is_draining = False
        self.channels = OpenChannels(runtime)
        self.feeds = Feeds(runtime.store)
        self.turns = Turns(runtime, self.agents)
        self.recovery = Recovery(runtime, self.turns, limits)
        self.webhooks = webhooks or Webhooks()
        from troth.server.openai_api.background import BackgroundResponses  # these stand on this very module
        from troth.server.pages.frame.recent import RecentPages

        self.recent_pages = RecentPages()
        self.responses = BackgroundResponses(self)
        self.turns.has_content = content
        self.telemetry = Telemetry(runtime, content=content)
        self.began_at = self.store.clock()
        self.owner = new_owner(self.store.clock())
        self._sources = list(workflows)
        self._starting: asyncio.Lock | None = None
        self._is_started = False

    async def start(self) -> None:
        """Load the workflows and begin to look after what was accepted; once, whoever comes first."""
        if self._is_started:
            return
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if not self._is_started:
                await call(self._load)
                await self.webhooks.open(self.runtime)
                await call(self.telemetry.open)
                await self.responses.open()
                self.recovery.start()
                self.guard_log.listen()
                self._is_started = True

    def _load(self) -> None:
        for source in self._sources:
            linked = self.runtime.load(source)
            name = linked.spec.name
            if name in self.workflows:
                raise MisuseError(
                    f"Two workflows are called {name!r}, so the name is ambiguous. The server was not started.\n"
                    "Give one of them another name."
                )
            self.workflows[name] = linked
            if isinstance(source, Saga):
                self.sagas[name] = source
        self.store.commit(ENROLL, lambda tx: tx.enroll(self.owner))
        self._stop_beating = self.store.chore(self.store.beat_every, self._beat)

    def _beat(self) -> None:
        self.store.commit(BEAT, lambda tx: tx.beat(self.owner.id, self.store.clock()))

    async def drain(self) -> None:
        """Take no new work from now on, tell the streams, and give turns the time to end that the limits say."""
        self.is_draining = True
        self.feeds.close()
        await self.recovery.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.drain):
                await self.turns.await_all()
        await self.turns.let_go()

    async def stop(self) -> None:
        """Let go of everything; the runtime stays open."""
        if not self._is_started:
            return
        self._is_started = False
        self.guard_log.stop()
        await self.recovery.stop()
        await self.turns.close()
        await self.responses.close()
        self.telemetry.close()
        await self.webhooks.close()
        self._stop_beating()
        with contextlib.suppress(Exception):
            await call(self.store.commit, RETIRE, lambda tx: tx.retire(self.owner.id))
        retire(self.owner)


def context_of(request: Request) -> ServerContext:
    """The server that a request came to."""
    context: ServerContext = request.scope["troth.context"]
    return context


async def _context(request: Request) -> ServerContext:  # async: FastAPI calls a sync one in a thread
    return context_of(request)


ContextDep = Annotated[ServerContext, Depends(resolved_by(_context)(_context))]
