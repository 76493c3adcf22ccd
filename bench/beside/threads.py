"""Programs after public threads in which somebody asked a tool to find a lost call; each is written anew, in few lines.

The key names the thread. `# lost` marks the line of the loss.
"""

__all__ = ["THREADS"]

_EXISTS = "class Repository:\n    async def exists(self, key: int) -> bool:\n        return key > 0\n\n\n"
_CHECK = "import asyncio\n\n\nasync def check(n: int = 0) -> bool:\n    await asyncio.sleep(0)\n    return n > 1\n\n\n"

THREADS = {
    "[mypy #2499](https://github.com/python/mypy/issues/2499), [pylint #8870](https://github.com/pylint-dev/pylint/issues/8870): dropped": f"{_CHECK}async def main() -> None:\n    check()  # lost\n    await asyncio.gather(check())\n",
    "[ty #2791](https://github.com/astral-sh/ty/issues/2791): assigned, and taken for its result": f"{_CHECK}async def main() -> str:\n    result = check()  # lost\n    return f'{{result}}'\n",
    "[pylint #1496](https://github.com/pylint-dev/pylint/issues/1496): an attribute of the coroutine": "async def load():\n    return open(__file__)\n\n\nasync def main():\n    return load().name  # lost\n",
    "[ruff #9833](https://github.com/astral-sh/ruff/issues/9833): assigned, without `await`": f"{_CHECK}async def main() -> None:\n    result = check()  # lost\n",
    "[ruff #9911](https://github.com/astral-sh/ruff/pull/9911): returned from `async def`": f"{_CHECK}async def again():\n    return check()  # lost\n\n\nasync def main() -> None:\n    print(await again())\n",
    "[ty #1073](https://github.com/astral-sh/ty/issues/1073), [mypy #16921](https://github.com/python/mypy/issues/16921): as a condition": f"{_CHECK}async def main() -> None:\n    if check():  # lost\n        print('always')\n",
    "[pyright #9086](https://github.com/microsoft/pyright/issues/9086): `if not self.repo.exists(…)`": f"{_EXISTS}class Service:\n    repo: Repository\n\n    def __init__(self) -> None:\n        self.repo = Repository()\n\n    async def delete(self, key: int) -> bool:\n        if not self.repo.exists(key):  # lost\n            return False\n        return True\n\n\nasync def main() -> None:\n    await Service().delete(0)\n",
    "[pyright #3563](https://github.com/microsoft/pyright/issues/3563): handed to a log call": f"import logging\n\n{_CHECK}async def main() -> None:\n    logging.getLogger(__name__).warning(check())  # lost\n",
    "[pyright #9129](https://github.com/microsoft/pyright/issues/9129): in `all(…)`": f"{_CHECK}async def main() -> bool:\n    return all(check(n) for n in range(3))  # lost\n",
    "[basedpyright #1547](https://github.com/DetachHead/basedpyright/issues/1547), [mypy #20570](https://github.com/python/mypy/issues/20570): assigned to `_`": f"{_CHECK}async def main() -> None:\n    _ = check()  # lost\n",
    "[pylint #9502](https://github.com/pylint-dev/pylint/issues/9502): assigned, then a condition": f"{_CHECK}async def main() -> None:\n    ok = check()  # lost\n    if ok:\n        print('always')\n",
    "[mypy #10841](https://github.com/python/mypy/issues/10841): subscripted, in code without annotations": "async def one():\n    return [1]\n\n\nasync def main():\n    return one()[0]  # lost\n",
    "[mypy #13589](https://github.com/python/mypy/issues/13589): a future that is never awaited": "import asyncio\n\n\ndef later() -> asyncio.Future[int]:\n    return asyncio.get_running_loop().create_future()\n\n\nasync def main() -> None:\n    later()  # lost\n",
    "[zuban #18](https://github.com/zubanls/zuban/issues/18): `asyncio.to_thread(…)` dropped": "import asyncio\n\n\ndef work() -> None: ...\n\n\nasync def main() -> None:\n    asyncio.to_thread(work)  # lost\n",
    "[cpython #112296](https://github.com/python/cpython/issues/112296): an async test in a `TestCase`": "import unittest\n\n\nclass Case(unittest.TestCase):\n    async def test_it(self) -> None:  # lost\n        self.assertTrue(False)\n\n\nasync def main() -> None:\n    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Case))\n",
    "[pytest-mock #374](https://github.com/pytest-dev/pytest-mock/issues/374): an async function for `call_soon_threadsafe`": f"{_CHECK}async def main() -> None:\n    asyncio.get_running_loop().call_soon_threadsafe(check)  # lost\n    await asyncio.sleep(0.01)\n",
}  # fmt: skip
