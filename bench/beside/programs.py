"""Small programs that lose a call, or are about to: the same ones are put to every tool. `# lost` marks the line."""

__all__ = ["PROGRAMS"]

_STORE = "class Store:\n    async def save(self, item: int) -> bool:\n        return item > 0\n\n\n"
_WORK = "import asyncio\n\n\nasync def work() -> int:\n    await asyncio.sleep(0)\n    return 1\n\n\n"

PROGRAMS = {
    "dropped": f"{_STORE}async def main() -> None:\n    Store().save(1)  # lost\n",
    "in a condition": f"{_STORE}async def main() -> str:\n    if Store().save(0):  # lost\n        return 'yes'\n    return 'no'\n",
    "assigned and forgotten": f"{_STORE}async def main() -> None:\n    done = Store().save(1)  # lost\n    print('saved')\n",
    "assigned to `_`": f"{_STORE}async def main() -> None:\n    _ = Store().save(1)  # lost\n",
    "turned into text": f"{_STORE}async def main() -> str:\n    return f'saved: {{Store().save(1)}}'  # lost\n",
    "compared": f"{_WORK}async def main() -> bool:\n    return work() == 1  # lost\n",
    "used as its result": f"{_WORK}async def main() -> int:\n    return work() + 1  # lost\n",
    "given to something that does not await": f"{_WORK}async def main() -> None:\n    print(work())  # lost\n",
    "in a comprehension": f"{_STORE}async def main() -> None:\n    [Store().save(n) for n in range(3)]  # lost\n",
    "in a sync function": f"{_STORE}def handle() -> None:\n    Store().save(1)  # lost\n\n\nasync def main() -> None:\n    handle()\n",
    "on an object without annotations": f"{_STORE}def make():  # no type is written down\n    return Store()\n\n\nasync def main() -> None:\n    make().save(1)  # lost\n",
    "inside `except Exception`": f"{_WORK}async def main() -> int:\n    try:\n        return work() + 1  # lost\n    except Exception:\n        return 0\n",
    "a task that is not kept": f"{_WORK}async def main() -> None:\n    asyncio.create_task(work())  # lost\n",
    "an async function as a sync callback": f"{_WORK}async def main() -> None:\n    loop = asyncio.get_running_loop()\n    loop.call_soon(work)  # lost\n    await asyncio.sleep(0.01)\n",
    "an async callback as a sort key": "async def rank(n: int) -> int:\n    return -n\n\n\nasync def main() -> list[int]:\n    return sorted([1, 2], key=rank)  # lost\n",
    "a loop inside a loop": f"{_WORK}def load() -> int:\n    return asyncio.run(work())\n\n\nasync def main() -> int:\n    return load()  # lost\n",
    "a blocking call": "import time\n\n\nasync def main() -> None:\n    time.sleep(0.01)  # lost\n",
    "a blocking call, two calls down": "import time\n\n\ndef pause() -> None:\n    time.sleep(0.01)\n\n\ndef tidy() -> None:\n    pause()\n\n\nasync def main() -> None:\n    tidy()  # lost\n",
    "a plain `with` on an async lock": f"{_WORK}async def main() -> None:\n    lock = asyncio.Lock()\n    with lock:  # lost\n        await work()\n",
    "a mock of the wrong color": f"from unittest.mock import Mock\n\n{_STORE}async def main() -> None:\n    store = Store()\n    store.save = Mock(return_value=True)  # lost\n    await store.save(1)\n",
    "awaited twice": f"{_WORK}async def main() -> int:\n    later = work()\n    return await later + await later  # lost\n",
}  # fmt: skip
