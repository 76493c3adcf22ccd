"""VS Code itself, in a browser: the squiggle, the lens, the quick fix, and the preview of a recolor over two files.

Pictures are left in `build/pictures`, to be looked at.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "code-server"
ENTRY = HOME / "node_modules/code-server/out/node/entry.js"
LIBRARIES = HOME / "extension" / "node_modules"  # what the extension needs, installed beside the editor
CHROMIUM = shutil.which("chromium")
PICTURES = ROOT / "build" / "pictures"
LONG = 240_000  # milliseconds; the first start on a busy machine
STORE = "class Store:\n    def save(self, order: int) -> None: ...\n\n    async def load(self) -> int: ...\n"
APP = (
    "from store import Store\n\n\nasync def main(store: Store) -> None:\n    store.save(1)\n    store.load()\n\n\n"
    "async def guess(thing):\n    thing.save(2)\n"  # whose `save` it is, nobody knows: that is to be confirmed
)

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not ENTRY.exists() or CHROMIUM is None, reason="`make soak` installs code-server with npm, where there is one"
    ),
]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (folder / "store.py").write_text(STORE)
    (folder / "app.py").write_text(APP)
    return folder


@contextlib.contextmanager
def vscode(tmp_path, project, troth):
    """The address of VS Code with our extension in it, which starts this `troth`."""
    extension = tmp_path / "extensions" / "troth.troth-0.1.0"
    shutil.copytree(ROOT / "editors" / "vscode", extension, ignore=shutil.ignore_patterns("node_modules", "test"))
    shutil.copytree(LIBRARIES, extension / "node_modules")
    user = tmp_path / "user"
    (user / "User").mkdir(parents=True)
    settings = {
        "troth.path": str(troth),
        "troth.log": str(tmp_path / "troth.log"),
        "workbench.startupEditor": "none",
        "security.workspace.trust.enabled": False,
        "telemetry.telemetryLevel": "off",
        "editor.minimap.enabled": False,
    }
    (user / "User" / "settings.json").write_text(json.dumps(settings))
    flags = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"]
    places = ["--user-data-dir", str(user), "--extensions-dir", str(extension.parent), str(project)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    process = subprocess.Popen(
        ["node", str(ENTRY), *flags, *places],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output: list[str] = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout), daemon=True)
    reader.start()
    try:
        end = time.monotonic() + LONG / 1000
        while not (match := re.search(r"http://127\.0\.0\.1:\d+", "".join(output))):
            assert process.poll() is None, "".join(output)
            assert time.monotonic() < end, "".join(output)
            time.sleep(0.1)
        yield match[0]
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)
        reader.join(10)
        process.stdout.close()


@pytest.mark.timeout(1500)
def test_from_squiggle_to_recolor(project, tmp_path):
    """What a user of VS Code sees and does."""
    from playwright.sync_api import TimeoutError as Late
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(parents=True, exist_ok=True)
    troth = Path(sys.executable).with_name("troth")
    with vscode(tmp_path, project, troth) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(LONG)

        def picture(name):
            page.screenshot(path=PICTURES / f"{name}.png")

        def opened(name):
            page.locator(f".explorer-folders-view .monaco-list-row[aria-label^='{name}']").dblclick()
            page.locator(f".tab.active[data-resource-name='{name}']").wait_for()

        def asked(keys, menu):
            """Ask as a person does: again, where VS Code did not ask the server, as the file is just being shown."""
            end = time.monotonic() + LONG / 1000
            while True:
                page.keyboard.press(keys)
                try:
                    return menu.wait_for(timeout=5_000)
                except Late:
                    assert time.monotonic() < end
                    page.keyboard.press("Escape")

        try:
            page.goto(f"{address}/?folder={project}")
            page.locator(".explorer-folders-view").wait_for()
            opened("app.py")
            page.locator(".squiggly-error, .squiggly-warning").first.wait_for()
            picture("1-squiggle")
            page.locator(".codelens-decoration", has_text="async: no caller in the project").first.wait_for()
            picture("2-lens")

            page.locator(".view-line", has_text="store.load()").click()
            page.keyboard.press("Home")
            asked("Control+.", page.locator(".action-widget", has_text="Await the call"))
            picture("3-quick-fix")
            page.keyboard.press("Enter")  # the first one; the list itself takes no clicks
            page.locator(".view-line", has_text=re.compile(r"await\s+store\.load\(\)")).wait_for()
            page.locator(".squiggly-error, .squiggly-warning").first.wait_for(state="detached")
            picture("4-repaired")

            opened("store.py")
            page.locator(".view-line", has_text="def save").click()
            offer = page.locator(".action-widget .monaco-list-row", has_text=re.compile("async", re.IGNORECASE)).first
            asked("Control+Shift+R", offer)
            picture("5-refactor")
            page.keyboard.press("Enter")
            changes = page.locator(".bulk-edit-panel .monaco-list-row")
            changes.filter(has_text="save(2)").first.wait_for()  # unticked; the certain ones are ticked
            picture("6-preview")
            page.get_by_role("button", name="Apply", exact=True).click()
            page.locator(".view-line", has_text=re.compile(r"async\s+def\s+save")).wait_for()
            opened("app.py")
            page.locator(".view-line", has_text=re.compile(r"await\s+store\.save\(1\)")).wait_for()
            picture("7-recolored")
        except Exception:
            picture("failed")
            print((tmp_path / "troth.log").read_text())
            raise
        finally:
            browser.close()


@pytest.mark.timeout(1500)
def test_a_troth_without_its_extra(project, tmp_path):
    """Somebody who installed plain `troth` is told what is missing, once, and nothing about a crash."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(parents=True, exist_ok=True)
    troth = tmp_path / "troth"
    without = "import sys; sys.modules['pygls'] = None; from troth.cli.app import run; sys.exit(run(sys.argv[1:]))"
    troth.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(without)} "$@"\n')
    troth.chmod(0o755)
    with vscode(tmp_path, project, troth) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(LONG)
        try:
            page.goto(f"{address}/?folder={project}")
            page.locator(".explorer-folders-view .monaco-list-row[aria-label^='app.py']").dblclick()
            page.locator(".notification-toast", has_text="pip install 'troth[lsp]'").wait_for()
            page.wait_for_timeout(3000)  # for the picture, as it slides in, and for what else might pop up
            assert page.locator(".notification-toast").count() == 1
        finally:
            page.screenshot(path=PICTURES / "without-the-extra.png")
            browser.close()
