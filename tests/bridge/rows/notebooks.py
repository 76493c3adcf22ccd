"""A real Jupyter kernel, run by nbclient."""

import json
import subprocess

from stage import row

CELLS = [
    "import asyncio, threading\nfrom troth import bridge\nasync def double(n):\n    await asyncio.sleep(0)\n    return n * 2",
    "before = bridge.explain()\n[bridge.run(double, 2), before.way.name, before == bridge.explain(last=True)]",
    "bridge.run(double(3)) + await double(3)",
    "async def numbers():\n    for n in range(3):\n        yield n\nlist(bridge.iterate(numbers()))",
    "await bridge.call(lambda: bridge.run(double, 5))",
    "[len(asyncio.all_tasks()) >= 1, len([t for t in asyncio.all_tasks() if 'double' in repr(t)])]",
    "sorted(t.name for t in threading.enumerate() if 'troth-portal' in t.name or 'troth-loop' in t.name)",
]


@row(
    "in a cell: run, await, iterate and call, with no thread of ours but the worker",
    sees=["[4, 'STACKED', True]", "12", "[0, 1, 2]", "10", "[True, 0]", "[]"],
    left=["Thread-", "MainThread - runner"],  # of jupyter_client and jupyter_core
    tasks=None,  # those of nbclient, in this process; the last cell looks at ours, in the kernel
    limit=60,
    needs=["ipykernel", "nbclient"],
)
def in_a_notebook():
    import sys
    import warnings
    from tempfile import TemporaryDirectory

    warnings.simplefilter("ignore")  # those of the libraries that start the kernel
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager
    from nbclient import NotebookClient

    with TemporaryDirectory() as folder:
        from pathlib import Path

        spec = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "own",
            "language": "python",
        }
        (Path(folder) / "own").mkdir()
        (Path(folder) / "own" / "kernel.json").write_text(json.dumps(spec))
        specs = KernelSpecManager()
        specs.kernel_dirs = [folder]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        manager = KernelManager(kernel_name="own", kernel_spec_manager=specs)
        try:
            NotebookClient(notebook, timeout=30, km=manager).execute(stderr=subprocess.DEVNULL)
        finally:
            manager.shutdown_kernel(now=True)
    return [cell["outputs"][-1]["data"]["text/plain"] for cell in notebook.cells[1:]]
