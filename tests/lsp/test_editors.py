"""Real editors, without a screen: each shows the finding, and neovim repairs it."""

import json
import shutil
import subprocess
import sys

import pytest

LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(LOST)
    return tmp_path


NEOVIM = """
local out = {}
local function done() vim.fn.writefile({vim.fn.json_encode(out)}, 'out.json'); vim.cmd('qa!') end
vim.defer_fn(function() out.late = true; done() end, 60000)
local buffer = vim.api.nvim_get_current_buf()
vim.lsp.start_client({
  cmd = {PYTHON, '-m', 'troth', 'lsp'}, root_dir = vim.fn.getcwd(),
  on_init = function(client) vim.lsp.buf_attach_client(buffer, client.id) end,
})
local function wait(is_true, what)
  if not vim.wait(30000, is_true, 20) then out.missing = what; done() end
end
wait(function() return #vim.diagnostic.get(buffer) > 0 end, 'diagnostics')
local first = vim.diagnostic.get(buffer)
out.count, out.line, out.source = #first, first[1].lnum, first[1].source
local client = vim.lsp.get_active_clients()[1]
local place = {textDocument = {uri = vim.uri_from_bufnr(buffer)}, position = {line = 4, character = 4}}
out.hover = client.request_sync('textDocument/hover', place, 20000, buffer).result.contents.value
local range = {start = place.position, ['end'] = place.position}
local actions = client.request_sync('textDocument/codeAction', {textDocument = place.textDocument, range = range, context = {diagnostics = {}}}, 20000, buffer).result
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
    done = subprocess.run(command, cwd=project, capture_output=True, timeout=100, check=False)
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
(setq eglot-sync-connect 30 eglot-connect-timeout 60)
(push '(python-mode . (PYTHON "-m" "troth" "lsp")) eglot-server-programs)
(find-file "app.py")
(python-mode)
(apply #'eglot (eglot--guess-contact))
(flymake-mode 1)
(let ((end (+ (float-time) 40)))
  (while (and (< (float-time) end) (null (flymake-diagnostics)))
    (accept-process-output nil 0.1)))
(dolist (one (flymake-diagnostics))
  (princ (format "%d %s\\n" (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-text one))))
(eglot-shutdown-all)
"""


@pytest.mark.skipif(
    shutil.which("emacs") is None, reason="emacs is not installed; `make test` installs it as root on Debian"
)
def test_emacs(project):
    """Eglot shows the finding."""
    program = EMACS.replace("PYTHON", json.dumps(sys.executable))
    if not _has_eglot():
        pytest.skip("this emacs has no eglot")
    (project / "t.el").write_text(program)
    command = ["emacs", "--batch", "-l", "t.el"]
    done = subprocess.run(command, cwd=project, capture_output=True, timeout=110, check=False)
    assert done.stdout.decode().count("never runs") == 1, done.stderr.decode()[-2000:]
    assert done.stdout.decode().startswith("5 ")


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
