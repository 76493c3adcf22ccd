"""A real FastAPI application behind a real uvicorn, asked over a real socket."""

import asyncio
import contextlib
import json
import threading
import urllib.error
import urllib.request

from stage import row

from troth import bridge


async def double(number: int) -> int:
    await asyncio.sleep(0.001)
    return number * 2


def application(seen):
    import httpx
    from fastapi import FastAPI, Request

    @contextlib.asynccontextmanager
    async def lifespan(app):
        before = bridge.explain()
        seen["lifespan"] = [bridge.run(double, 1), before.way.name, before == bridge.explain(last=True)]
        transport = httpx.ASGITransport(app=FastAPI())
        async with httpx.AsyncClient(transport=transport, base_url="http://inside") as client:
            app.state.client = client
            app.state.lock = asyncio.Lock()
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/async")
    async def async_route():
        before = bridge.explain()
        return [bridge.run(double, 2), before.way.name, before == bridge.explain(last=True)]

    @app.get("/sync")
    def sync_route():
        before = bridge.explain()
        return [bridge.run(double, 3), before.way.name, before == bridge.explain(last=True)]

    @app.get("/shared")
    def shared_client(request: Request):
        async def ask():
            async with request.app.state.lock:
                return (await request.app.state.client.get("/nothing")).status_code

        return bridge.run(ask)

    @app.get("/strict")
    async def strict():
        try:
            bridge.run(double(1), strict=True)
        except bridge.BlockedLoopError as error:
            return type(error).__name__

    @app.get("/limited")
    def limited():
        try:
            bridge.run(asyncio.sleep, 30, timeout=0.05)
        except TimeoutError as error:
            return type(error).__name__

    @app.get("/called")
    async def called():
        return await bridge.call(lambda: threading.current_thread().name.split("_")[0])

    app.get("/face/{number}")(bridge.sync(double))
    app.get("/halved/{number}")(bridge.aio(halve))
    return app


def halve(number: int) -> int:
    return number // 2


def serve(loop):
    import uvicorn

    seen = {}
    config = uvicorn.Config(application(seen), host="127.0.0.1", port=0, log_level="error", loop=loop)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        threading.Event().wait(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        for path in ["/async", "/sync", "/shared", "/strict", "/limited", "/called", "/face/4", "/halved/4", "/face/x"]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    seen[path] = json.load(answer)
            except urllib.error.HTTPError as error:
                seen[path] = error.code
                error.close()
    finally:
        server.should_exit = True
        thread.join(10)
    return seen


EXPECTED = {
    "lifespan": [2, "STACKED", True],
    "/async": [4, "STACKED", True],
    "/sync": [6, "HOME", True],
    "/shared": 404,
    "/strict": "BlockedLoopError",
    "/limited": "RunTimeoutError",
    "/called": "troth-worker",
    "/face/4": 8,
    "/halved/4": 2,
    "/face/x": 422,
}
NEEDS = ["fastapi", "uvicorn", "httpx"]


@row(
    "FastAPI on asyncio: lifespan, async and sync routes, the server's own client, facades as routes",
    sees=EXPECTED,
    left=["troth-worker"],
    limit=40,
    needs=NEEDS,
)
def fastapi_on_asyncio():
    return serve("asyncio")


@row("FastAPI on uvloop: the same", sees=EXPECTED, left=["troth-worker"], limit=40, needs=[*NEEDS, "uvloop"])
def fastapi_on_uvloop():
    return serve("uvloop")
