"""A real Chromium, by its path, with the network shut but for the server that a test has started."""

import contextlib
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(__file__).with_name("axe") / "axe-4.14.0.min.js"
PATIENCE = 120_000
"""Milliseconds. A page that shows what is waited for goes on at once: this is for a machine that is busy."""


def needs_browser():
    """Skip where there is no Chromium, and say so."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here (`apt-get install chromium`), so no page is looked at in a browser")
    return pytest.importorskip("playwright.sync_api", reason="playwright is not installed here")


@contextlib.contextmanager
def chromium():
    """A browser with a folder of its own, which is gone afterwards."""
    api = needs_browser()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A tab, everything that it asked for, and everything that went wrong in it."""

    def __init__(self, browser, url, **options):
        self.url = url
        options = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce", **options}
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE)
        self.problems, self.requests = [], []
        self.context.route("**/*", self._let_pass)
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda problem: self.problems.append(f"error: {problem}"))
        self.expects_failures = False

    def _let_pass(self, route):
        address = urlsplit(route.request.url)
        self.requests.append(route.request.url)
        if address.netloc == urlsplit(self.url).netloc or address.scheme == "data":
            with contextlib.suppress(Exception):  # the page may be gone meanwhile
                route.continue_()
            return
        self.problems.append(f"left the origin: {route.request.url}")
        route.abort()

    def _said(self, message):
        if message.type in ("error", "warning") and not self.expects_failures:
            self.problems.append(f"console {message.type}: {message.text}")

    def open(self, path=""):
        self.page.goto(f"{self.url}/{path}")
        return self.page

    def wait_live(self):
        """Wait until the page follows what happens."""
        self.page.wait_for_selector("body.is-live")

    def axe(self):
        """What axe has to say against the page."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{violation['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def close(self):
        self.context.close()
