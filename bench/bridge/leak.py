"""What ten thousand calls leave behind: `python -m bench.bridge.leak` prints threads, descriptors and memory."""

import asyncio
import gc
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

from troth import bridge

CALLS = 10_000


async def work() -> int:
    await asyncio.sleep(0)
    return 1


async def failing() -> None:
    raise ValueError


def descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else -1


def memory() -> int:
    """Resident KiB now; where the system does not tell, the most there ever was."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def state() -> tuple[int, int, int]:
    gc.collect()
    return threading.active_count(), descriptors(), memory()


def fail() -> None:
    try:
        bridge.run(failing)
    except ValueError:
        return


def iterate() -> None:
    async def numbers():  # type: ignore[no-untyped-def]
        yield 1
        yield 2

    for _ in bridge.iterate(numbers()):
        break


def main() -> None:
    portal = bridge.Portal()

    async def inside() -> None:
        for _ in range(CALLS):
            bridge.run(work)

    async def offload() -> None:
        for _ in range(CALLS):
            await bridge.call(len, "x")

    def thread() -> None:
        worker = threading.Thread(target=bridge.run, args=(work,))
        worker.start()
        worker.join()

    def each(call: Callable[[], object]) -> Callable[[], None]:
        return lambda: [call() for _ in range(CALLS)] and None

    rows: dict[str, Callable[[], object]] = {
        "run, no loop": each(lambda: bridge.run(work)),
        "run, raising": each(fail),
        "run, in a loop": lambda: asyncio.run(inside()),
        "run, in 10,000 threads": each(thread),
        "iterate, left early": each(iterate),
        "Portal.run": each(lambda: portal.run(work)),
        "call": lambda: asyncio.run(offload()),
    }
    print(f"\n{CALLS:,} calls each{'threads':>22}{'descriptors':>14}{'memory KiB':>13}")
    for name, row in rows.items():
        row()  # once to fill caches and pools, once to see what a second time adds
        before = state()
        row()
        after = state()
        grown = [f"{new - old:+d}" for old, new in zip(before, after, strict=True)]
        print(f"{name:<28}{grown[0]:>14}{grown[1]:>14}{grown[2]:>13}")
    portal.close()


if __name__ == "__main__":
    main()
