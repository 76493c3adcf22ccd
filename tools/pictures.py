"""Take pictures of every page of the server, light, dark and narrow, so that somebody can look at them.

    python -m tools.pictures FOLDER
    python -m tools.pictures --docs         write those that the documentation shows, anew

It needs a Chromium (`apt-get install chromium`) and the development tools. The shop that is shown is the one of the
tests (`tests/server/pages/scene.py`).
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["main"]

browser: Any = import_module("tests.server.pages.browser")
scene: Any = import_module("tests.server.pages.scene")

ROOT = Path(__file__).parent.parent
LOOKS: dict[str, dict[str, object]] = {
    "light": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 360, "height": 640}, "color_scheme": "light"},
}
DOCS = {
    "now-light": "page-now",
    "failed-run-light": "page-failed-run",
    "failed-run-narrow": "page-failed-run-phone",
    "conversation-light": "page-conversation",
    "session-dark": "page-session-dark",
}
"""The pictures of the documentation, by the names that they have there."""


def pages_of(shop: Any) -> dict[str, str]:
    """Something of everything in the shop, and the address of each page."""
    shop.run("order", order="B1")
    shop.run("order", order="B2")
    resists = shop.run("resists", order="A7")
    shop.run("rolls", order="C3")
    waiting = shop.run("asks", until="waiting", order="A7")
    shop.start("gated")
    session = scene.add_session(shop)
    shop.post(f"/sessions/{session}/members/novice/kill", reason="it guessed")
    completed = shop.run("order", order="B3")
    failed = shop.run("order", order="A7")
    return {
        "now": "",
        "runs": "runs",
        "runs-that-failed": "runs?failed_since=1",
        "no-runs": "runs?workflow=asks&state=cancelled",
        "failed-run": f"runs/{failed}",
        "completed-run": f"runs/{completed}",
        "difference": f"runs/{failed}?diff={completed}",
        "interrupted-run": f"runs/{shop.interrupted()}",
        "resisting-run": f"runs/{resists}",
        "waiting-run": f"runs/{waiting}",
        "conversations": "conversations",
        "conversation": f"conversations/{scene.add_talk(shop, agent='desk')}",
        "sessions": "sessions",
        "session": f"sessions/{session}",
        "verified-session": f"sessions/{session}?verify=1",
        "promises": "promises",
        "promise": "promises/parcel-1",
        "job": "jobs/pack-1",
        "search": "search?text=order",
        "missing": "runs/nothing",
    }


def take(folder: Path, *, wanted: dict[str, str] | None = None) -> list[Path]:
    """Write the pictures into a folder; those of `wanted` alone, under the names that it gives them."""
    written = []
    with tempfile.TemporaryDirectory() as place, browser.chromium() as chromium:
        shop = scene.Shop(Path(place))
        try:
            pages = pages_of(shop)
            for look, options in LOOKS.items():
                tab = browser.Tab(chromium, shop.url, **options)
                for name, path in pages.items():
                    key = f"{name}-{look}"
                    if wanted is not None and key not in wanted:
                        continue
                    page = tab.open(path)
                    page.wait_for_timeout(600)
                    if wanted is not None and place in page.locator("body").inner_text():
                        sys.exit(f"{key} shows {place}, a folder of this machine. It was not written.")
                    written.append(folder / f"{key if wanted is None else wanted[key]}.png")
                    page.screenshot(path=str(written[-1]), full_page=wanted is None)
                tab.close()
        finally:
            shop.close()
    return written


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description="Take pictures of every page.")
    parser.add_argument("folder", nargs="?", type=Path, help="where to write them")
    parser.add_argument("--docs", action="store_true", help="write the pictures of the documentation anew")
    args = parser.parse_args(arguments)
    if not args.docs and args.folder is None:
        parser.error("name a folder, or give --docs")
    folder = ROOT / "docs" / "_static" if args.docs else args.folder
    folder.mkdir(parents=True, exist_ok=True)
    for path in take(folder, wanted=DOCS if args.docs else None):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
