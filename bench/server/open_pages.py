"""What open pages cost: a long run in a browser, an idle page, and many readers of *Now* while runs begin.

    python -m bench.server.open_pages            about three minutes
    python -m bench.server.open_pages --quick    fewer steps, seconds and runs

long      a run of 5,000 steps in Chromium: until its first step can be read, and long tasks (> 100 ms) while scrolling
idle      the CPU of a server with one page of *Now* open, less that with none
readers   50 readers of *Now*, each of which follows it and looks again as a page does, while 100 runs a second are to
          begin: time and CPU of the same runs with the readers and without, and how long one run took

The server is a process of its own, with the shop of the tests (`tests/server/pages/scene.py`). `long` and `idle` need a
Chromium and are left out, with a sentence, where there is none. Wall time is that of a machine that may be busy: the
load is printed beside it. Nothing here asserts.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import httpx

READERS = 50
APART = 0.4  # seconds between two looks of one page, as in `troth.js`
SCROLL = """() => new Promise(done => {
  const long = [];
  const watch = new PerformanceObserver(list => list.getEntries().forEach(task => long.push(task.duration)));
  watch.observe({type: "longtask"});
  let y = 0;
  const step = () => {
    scrollTo(0, y += 400);
    if (y < document.body.scrollHeight) requestAnimationFrame(step); else setTimeout(() => done(long), 500);
  };
  step();
})"""


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def why_no_browser() -> str:
    """Why no page can be looked at in a browser; empty where one can."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    if import_module("tests.server.pages.browser").CHROMIUM is None:
        return "no Chromium is installed (`apt-get install chromium`)"
    return ""


def long_run(shop, chromium, steps: int) -> None:
    """A run of many steps, until it can be read, and while it is scrolled."""
    browser = import_module("tests.server.pages.browser")
    run, pid = shop.run("many", items=[str(number) for number in range(steps)]), shop.served.process.pid
    tab = browser.Tab(chromium, shop.url)
    rounds = []
    for _ in range(3):
        begun, cpu = time.perf_counter(), cpu_of(pid)
        page = tab.open(f"runs/{run}")
        page.locator(".steps tbody tr").first.wait_for()
        rounds.append((time.perf_counter() - begun, cpu_of(pid) - cpu))
    readable, server = min(rounds)
    long = [f"{task:.0f} ms" for task in page.evaluate(SCROLL) if task > 100]
    tab.close()
    print(f"a run of {steps:,} steps in Chromium, the best of 3")
    print(f"  readable after {readable:.2f} s, of which the server's CPU {server:.2f} s")
    print(f"  long tasks (> 100 ms) while scrolling: {', '.join(long) or 'none'}")


def idle(shop, chromium, seconds: int) -> None:
    """What one open page of *Now* costs the server."""
    browser = import_module("tests.server.pages.browser")
    pid = shop.served.process.pid

    def share() -> float:
        cpu = cpu_of(pid)
        time.sleep(seconds)
        return (cpu_of(pid) - cpu) / seconds * 100

    time.sleep(3)  # what was begun before is over
    without = share()
    tab = browser.Tab(chromium, shop.url)
    tab.open("")
    tab.wait_live()
    time.sleep(3)
    with_page = share()
    tab.close()
    tick = 100 / os.sysconf("SC_CLK_TCK") / seconds
    print(f"an idle server, over {seconds} s each; CPU is counted in steps of {tick:.3f} %")
    print(
        f"  without a page {without:.3f} % of a core, with one {with_page:.3f} %: it costs {with_page - without:.3f} %"
    )


async def follow(url: str, begins: asyncio.Event) -> None:
    """One reader: it follows the stream, and looks at *Now* again where that has changed."""
    have, last = "", 0.0
    async with (
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
        client.stream("GET", "/live?on=all", timeout=None) as stream,
    ):
        begins.set()
        async for line in stream.aiter_lines():
            if not line.startswith("data: ") or "have" not in line or json.loads(line[6:])["have"] == have:
                continue
            await asyncio.sleep(max(0.0, last + APART - time.monotonic()))
            last = time.monotonic()
            page = await client.get("/", headers={"Accept-Encoding": "gzip"})
            print("look", flush=True)
            have = re.search(r'data-have="(\w+)"', page.text)[1]


async def read_along(url: str) -> None:
    """All readers; a line tells when each of them follows."""
    follows = [asyncio.Event() for _ in range(READERS)]

    async def tell() -> None:
        for event in follows:
            await event.wait()
        print("all follow", flush=True)

    await asyncio.gather(tell(), *(follow(url, event) for event in follows))


class Cost(NamedTuple):
    """What runs cost that were begun one after the other."""

    seconds: float
    cpu: float
    median: float  # milliseconds from the beginning to the end of one run, as the store tells it


def begin(client: httpx.Client, pid: int, count: int) -> Cost:
    """Begin runs, 100 a second or as many as can be."""
    start, cpu = time.monotonic(), cpu_of(pid)
    for number in range(1, count + 1):
        client.post("/v1/runs", json={"workflow": "order", "inputs": {"order": "B1"}}).raise_for_status()
        time.sleep(max(0.0, start + number / 100 - time.monotonic()))
    seconds, cpu = time.monotonic() - start, cpu_of(pid) - cpu
    time.sleep(1)  # the last ones end
    runs = client.get("/v1/runs?limit=100").json()["data"]
    spans = [run["ended_at"] - run["created_at"] for run in runs if run["ended_at"]]
    return Cost(seconds, cpu, statistics.median(spans) * 1000)


def readers(shop, count: int) -> None:
    """The same runs alone and beside the readers, turn by turn."""
    pid, url = shop.served.process.pid, shop.url
    print(f"{count} runs that begin, 100 a second, alone and beside {READERS} readers of Now")
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        begin(client, pid, 100)
        for _ in range(2):
            alone = begin(client, pid, count)
            command = [sys.executable, "-m", "bench.server.open_pages", "--follow", url]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                process.stdout.readline()
                time.sleep(2)
                beside = begin(client, pid, count)
                ended = process.poll()
            finally:
                process.kill()
                looks = process.communicate()[0].count("look")
            if ended is not None:
                print(f"  the readers ended by themselves with {ended}, so this round says nothing")
                continue
            for name, cost in (("alone", alone), ("beside them", beside)):
                print(
                    f"  {name:<12} {cost.seconds:6.2f} s, CPU {cost.cpu:5.2f} s, a run {cost.median:6.1f} ms (median)"
                )
            ratios = [mine / bare for mine, bare in zip(beside, alone, strict=True)]
            print(f"  {ratios[0]:.2f} x the time, {ratios[1]:.2f} x the CPU, {ratios[2]:.2f} x a run; {looks} looks")


def measure(*, quick: bool) -> None:
    """All three."""
    scene, browser = import_module("tests.server.pages.scene"), import_module("tests.server.pages.browser")
    print(f"open pages, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        shop = scene.Shop(Path(folder))
        try:
            why = why_no_browser()
            if why:
                print(f"  {why}, so neither a long run nor an idle page is measured")
            else:
                with browser.chromium() as chromium:
                    idle(shop, chromium, 5 if quick else 30)
                    long_run(shop, chromium, 500 if quick else 5000)
            readers(shop, 100 if quick else 400)
        finally:
            shop.close()


def main(argv: list[str]) -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--follow", metavar="URL", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.follow:
        asyncio.run(read_along(args.follow))
    else:
        measure(quick=args.quick)


if __name__ == "__main__":
    main(sys.argv[1:])
