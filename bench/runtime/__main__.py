"""Run every measurement of the runtime: `python -m bench.runtime`."""

import importlib
import pkgutil
import sys
from pathlib import Path

for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if not found.name.startswith("_"):
        print(f"\n» bench/runtime/{found.name}.py")
        importlib.import_module(f"bench.runtime.{found.name}").main([])
sys.exit(0)
