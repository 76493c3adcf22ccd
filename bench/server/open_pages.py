"""What open pages cost: a long run in a browser, an idle page, and many readers of *Now* while runs begin.

    python -m bench.server.open_pages            about three minutes
    python -m bench.server.open_pages --quick    fewer steps, seconds and runs

long      a run of 5,000 steps in Chromium: until its first step can be read, and long tasks (> 100 ms) while scrolling
idle      the CPU of a server with one page of *Now* open, less that with none
readers   50 readers of *Now*, each of which follows it as a page does, while 100 runs a second are to begin: the CPU of
          the same runs with the readers and without, turn by turn, and how long one run took

The server is a process of its own, with the shop of the tests (`tests/server/pages/scene.py`). `long` and `idle` need a
Chromium and are left out, with a sentence, where there is none. Wall time is that of a machine that may be busy: the
load is printed beside it. Nothing here asserts.
"""

import argparse
import asyncio
import os
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
    for _ in range(5):
        devtools = tab.context.new_cdp_session(tab.page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _thread(devtools)
        begun, cpu = time.perf_counter(), cpu_of(pid)
        page = tab.open(f"runs/{run}")
        page.locator(".steps tbody tr").first.wait_for()
        rounds.append((time.perf_counter() - begun, cpu_of(pid) - cpu, _thread(devtools) - before))
    readable, server, thread = (min(column) for column in zip(*rounds, strict=True))
    long = [f"{task:.0f} ms" for task in page.evaluate(SCROLL) if task > 100]
    tab.close()
    print(f"a run of {steps:,} steps in Chromium, the best of 5")
    print(
        f"  readable after {readable:.2f} s; CPU of the server {server:.2f} s, of the page's own thread {thread:.2f} s"
    )
    print(f"  long tasks (> 100 ms) while scrolling: {', '.join(long) or 'none'}")


def _thread(devtools) -> float:
    """Seconds of CPU of the page's main thread."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def finely(pid: int) -> float:
    """Seconds of CPU of the threads that a process has now, in nanoseconds' steps: for what costs next to nothing."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def idle(shop, chromium, seconds: int) -> None:
    """What one open page of *Now* costs the server, turn by turn with none."""
    browser = import_module("tests.server.pages.browser")
    pid = shop.served.process.pid

    def share() -> float:
        time.sleep(3)  # what was begun before is over
        cpu = finely(pid)
        time.sleep(seconds)
        return (finely(pid) - cpu) / seconds * 100

    without, with_page = list[float](), list[float]()
    for _ in range(3):
        without.append(share())
        tab = browser.Tab(chromium, shop.url)
        tab.open("")
        tab.wait_live()
        with_page.append(share())
        tab.close()
    cost = statistics.median(with_page) - statistics.median(without)
    rounds = ", ".join(f"{alone:.3f} / {open_page:.3f}" for alone, open_page in zip(without, with_page, strict=True))
    print(f"an idle server without a page / with one of Now, % of a core over {seconds} s each: {rounds}")
    print(f"  the page costs {cost:.3f} % (medians)")


async def follow(url: str, begins: asyncio.Event) -> None:
    """One reader: it follows the stream, and gets *Now* with what has changed, as a browser does."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
        client.stream("GET", "/live?on=all&page=", timeout=None) as stream,
    ):
        async for line in stream.aiter_lines():
            begins.set()
            if line.startswith("data: ") and '"page"' in line:
                print("look", flush=True)


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
    start, cpu = time.monotonic(), finely(pid)
    for number in range(1, count + 1):
        client.post("/v1/runs", json={"workflow": "order", "inputs": {"order": "B1"}}).raise_for_status()
        time.sleep(max(0.0, start + number / 100 - time.monotonic()))
    seconds, cpu = time.monotonic() - start, finely(pid) - cpu
    time.sleep(1)  # the last ones end
    runs = client.get("/v1/runs?limit=100").json()["data"]
    spans = [run["ended_at"] - run["created_at"] for run in runs if run["ended_at"]]
    return Cost(seconds, cpu, statistics.median(spans) * 1000)


def readers(shop, rounds: int) -> None:
    """The same runs alone and beside the readers, turn by turn."""
    pid, url = shop.served.process.pid, shop.url
    print(f"100 runs that begin, 100 a second, alone and beside {READERS} readers of Now, {rounds} times in turn")
    costs: dict[str, list[Cost]] = {"alone": [], "beside them": []}
    looks = 0
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        begin(client, pid, 100)
        for _ in range(rounds):
            costs["alone"].append(begin(client, pid, 100))
            command = [sys.executable, "-m", "bench.server.open_pages", "--follow", url]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                process.stdout.readline()
                time.sleep(2)
                beside = begin(client, pid, 100)
                ended = process.poll()
            finally:
                process.kill()
                looks += process.communicate()[0].count("look")
            if ended is not None:
                print(f"  the readers ended by themselves with {ended}, so this round says nothing")
                continue
            costs["beside them"].append(beside)
    for name, rows in costs.items():
        print(f"  {name:<12} CPU {', '.join(f'{cost.cpu:.2f}' for cost in rows)} s")
    alone, beside = ([statistics.median(column) for column in zip(*rows, strict=True)] for rows in costs.values())
    ratios = [mine / bare for mine, bare in zip(beside, alone, strict=True)]
    print(
        f"  medians: {ratios[1]:.2f} x the CPU, {ratios[2]:.2f} x a run ({alone[2]:.1f} ms), {ratios[0]:.2f} x the time"
    )
    print(f"  {looks} pages were sent along")


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
                    idle(shop, chromium, 5 if quick else 20)
                    long_run(shop, chromium, 500 if quick else 5000)
            readers(shop, 3 if quick else 7)
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
