"""Measures one peer beside the floors, in a process of its own: `python -m bench.bridge.measure NAME` prints JSON."""

import asyncio
import json
import sys
import threading
import time

from bench.bridge.peers import PEERS, Call, work
from bench.bridge.timing import BATCH, ROUNDS, batch, typical


def reused_loop() -> Call:
    """The floor for a call on one's own thread: a loop that is kept."""
    loop = asyncio.SelectorEventLoop()
    return lambda: loop.run_until_complete(work())


def bare_hand_off() -> Call:
    """The floor for a call in another thread: two locks, and nothing between them."""
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()

    def answer() -> None:
        while True:
            there.acquire()
            back.release()

    threading.Thread(target=answer, daemon=True).start()

    def call() -> object:
        there.release()
        return back.acquire()

    return call


async def inside(call: Call, times: list[float], size: int) -> None:
    if "greenback" in sys.modules:
        await sys.modules["greenback"].ensure_portal()
    times.append(batch(call, size))


def calls_per_second(call: Call, threads: int, seconds: float = 0.3) -> float:
    counts: list[int] = []
    stop = time.perf_counter() + seconds

    def repeat() -> None:
        count = 0
        while time.perf_counter() < stop:
            call()
            count += 1
        counts.append(count)

    workers = [threading.Thread(target=repeat) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def measure(name: str) -> dict[str, float | None]:
    reused, hand_off = reused_loop(), bare_hand_off()
    floors: dict[str, list[float]] = {"reused": [], "hand_off": []}
    before = name == "nest_asyncio2"  # once applied, it has changed the floor as well
    if before:
        for _ in range(ROUNDS):
            floors["reused"].append(batch(reused))
            floors["hand_off"].append(batch(hand_off))
    outside, within = PEERS[name]()
    size = BATCH if outside is None or batch(outside, 3) < 1e-4 else 5  # a slow peer need not be called so often
    outer = asyncio.SelectorEventLoop()
    times: dict[str, list[float]] = {"outside": [], "inside": []}
    for _ in range(ROUNDS):  # in turn, so that a busy moment of the machine touches every row
        if not before:
            floors["reused"].append(batch(reused))
            floors["hand_off"].append(batch(hand_off))
        if outside is not None:
            times["outside"].append(batch(outside, size))
        if within is not None:
            outer.run_until_complete(inside(within, times["inside"], size))
    found: dict[str, float | None] = {key: typical(value) for key, value in floors.items()}
    found |= {key: typical(value) if value else None for key, value in times.items()}
    found["rate_1"] = calls_per_second(outside, 1) if outside is not None else None
    found["rate_8"] = calls_per_second(outside, 8) if outside is not None and not before else None
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(measure(sys.argv[1])))
    except ModuleNotFoundError as missing:
        print(json.dumps({"missing": missing.name}))
