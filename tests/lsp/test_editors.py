"""Real editors, without a screen: each shows the finding, and neovim repairs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(LOST)
    return tmp_path


NEOVIM = """
local out = {}
local function done() vim.fn.writefile({vim.fn.json_encode(out)}, 'out.json'); vim.cmd('qa!') end
vim.defer_fn(function() out.late = true; done() end, 340000)
local buffer = vim.api.nvim_get_current_buf()
vim.lsp.start_client({
  cmd = {PYTHON, '-m', 'troth', 'lsp'}, root_dir = vim.fn.getcwd(),
  on_init = function(client) vim.lsp.buf_attach_client(buffer, client.id) end,
})
local function wait(is_true, what)
  if not vim.wait(120000, is_true, 20) then out.missing = what; done() end
end
wait(function() return #vim.diagnostic.get(buffer) > 0 end, 'diagnostics')
local first = vim.diagnostic.get(buffer)
out.count, out.line, out.source = #first, first[1].lnum, first[1].source
local client = vim.lsp.get_active_clients()[1]
local place = {textDocument = {uri = vim.uri_from_bufnr(buffer)}, position = {line = 4, character = 4}}
out.hover = client.request_sync('textDocument/hover', place, 120000, buffer).result.contents.value
local range = {start = place.position, ['end'] = place.position}
local actions = client.request_sync('textDocument/codeAction', {textDocument = place.textDocument, range = range, context = {diagnostics = {}}}, 120000, buffer).result
out.title = actions[1].title
vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
wait(function() return #vim.diagnostic.get(buffer) == 0 end, 'no diagnostics after the repair')
out.text = vim.api.nvim_buf_get_lines(buffer, 4, 5, false)[1]
done()
"""


@pytest.mark.skipif(
    shutil.which("nvim") is None, reason="neovim is not installed; `make test` installs it as root on Debian"
)
def test_neovim(project):
    """Diagnostics are shown once, hover says why, and the quick fix is applied."""
    (project / "t.lua").write_text(NEOVIM.replace("PYTHON", json.dumps(sys.executable)))
    command = ["nvim", "--headless", "-u", "NONE", "-n", "app.py", "-c", "luafile t.lua"]
    done = subprocess.run(command, cwd=project, capture_output=True, timeout=380, check=False)
    out = json.loads((project / "out.json").read_text()) if (project / "out.json").exists() else done.stderr.decode()
    assert out == {
        "count": 1,
        "line": 4,
        "source": "troth",
        "hover": out["hover"],
        "title": "Await the call (TR101)",
        "text": "    await f()",
    }
    assert "`f` is `async def`" in out["hover"]


EMACS = """
(package-initialize)
(require 'eglot)
(require 'flymake)
(setq eglot-sync-connect 150 eglot-connect-timeout 150 last-nonmenu-event t)
CONFIGURATION
(defun wait-until (is-true)
  (let ((end (+ (float-time) 150)))
    (while (and (< (float-time) end) (not (funcall is-true))) (accept-process-output nil 0.1))))
(find-file "app.py")
(run-hooks 'post-command-hook)
(wait-until (lambda () (flymake-diagnostics)))
(dolist (one (flymake-diagnostics))
  (princ (format "%d %s\\n" (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-text one))))
(goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
(cl-letf (((symbol-function 'completing-read) (lambda (_prompt choices &rest _) (caar choices))))
  (eglot-code-actions (point) (point) "quickfix" t))
(eglot--signal-textDocument/didChange)
(wait-until (lambda () (null (flymake-diagnostics))))
(princ (format "left: %S\\n%s" (flymake-diagnostics) (buffer-string)))
(eglot-shutdown-all)
"""


@pytest.mark.skipif(
    shutil.which("emacs") is None, reason="emacs is not installed; `make test` installs it as root on Debian"
)
def test_emacs(project):
    """With the lines of our page, eglot shows the finding once and repairs it, and has nothing to complain of."""
    page = (ROOT / "docs" / "how-to" / "editors" / "emacs.md").read_text()
    program = EMACS.replace("CONFIGURATION", page.split("```elisp\n")[1].split("```")[0])
    if not _has_eglot():
        pytest.skip("this emacs has no eglot")
    (project / "t.el").write_text(program)
    command = ["emacs", "--batch", "-l", "t.el"]
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # `troth` is on it, as for a user
    environment = {**os.environ, **path}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, timeout=380, check=False)
    said = done.stderr.decode()
    assert done.stdout.decode().count("never runs") == 1, said[-2000:]
    assert done.stdout.decode().startswith("5 ")
    assert done.stdout.decode().endswith("left: nil\n" + LOST.replace("    f()", "    await f()")), done.stdout.decode()
    assert "warning" not in said.lower()


def _has_eglot() -> bool:
    command = [
        "emacs",
        "--batch",
        "--eval",
        "(package-initialize)",
        "--eval",
        '(unless (locate-library "eglot") (kill-emacs 1))',
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
