"""Keeps the suite to itself, wherever and beside whatever it runs, and holds its processes to a limit of memory.

Nothing of the machine it runs on gets in: temporary files lie in a folder that belongs to this run alone, so that another
pytest cannot take it for one of its old ones; settings of git, of pytest and of Troth in the environment are left out.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from troth.analysis.crash import raise_at_once

_MB = int(os.environ.get("TROTH_TESTS_MB", "400"))
_STEP = 10  # MB by which a process may grow until its garbage is collected
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

# A suite that is started in the background (`make test &`, some CI runners) inherits that SIGINT is ignored, and so do
# all processes that tests start in order to interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in [name for name in os.environ if name.startswith("TROTH_") or name == "PYTEST_ADDOPTS"]:
    if name != "TROTH_TESTS_MB":  # the workers have to see it
        del os.environ[name]
os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
if not _IS_WORKER:
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="troth-tests-")
    tempfile.tempdir = None  # read the variable again


# What a user is told in one line ends a test: a bug of our own that is contained would else pass for an answer.
raise_at_once(is_on=True)


# How long an example takes to make, or a test to run, says something of the machine, and nothing of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config):
    config.pluginmanager.register(Memory(config), "troth-memory")


def pytest_unconfigure():
    if not _IS_WORKER:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


class Memory:
    """Fails a run in which a process has needed too much memory, and names the tests it grew with.

    What a test keeps alive is paid for by all that follow in the same process: a run on many cores takes as many times
    the memory of one process. Mere garbage does not count: among the many objects of a large suite Python looks for it
    so rarely that it would be a third of the memory, so it is collected here whenever the process has grown.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._grown: Counter[str] = Counter()
        self._too_large: list[str] = []
        self._collected_at = peak()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before = peak()
        try:
            return (yield)
        finally:
            self._grown[item.nodeid] += peak() - before
            if peak() > self._collected_at + _STEP:
                gc.collect()
                self._collected_at = peak()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if _IS_WORKER:
            self._config.workeroutput["memory"] = self._problem(os.environ["PYTEST_XDIST_WORKER"])
            return
        self._too_large.append(self._problem("this process"))
        self._too_large = [problem for problem in self._too_large if problem]
        if self._too_large and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self._too_large.append(getattr(node, "workeroutput", {}).get("memory", ""))

    def pytest_terminal_summary(self, terminalreporter):
        for problem in self._too_large:
            terminalreporter.section("memory", red=True)
            terminalreporter.write_line(problem)

    def _problem(self, process: str) -> str:
        """What is wrong with this process; nothing if it stayed below the limit."""
        if (most := peak()) <= _MB:
            return ""
        files: Counter[str] = Counter()
        for test, grown in self._grown.items():
            files[test.partition("::")[0]] += grown
        lines = [
            f"{process} needed {most} MB, and {_MB} MB is the limit. It grew most with:",
            *(
                f"  {grown:5} MB  {where}"
                for where, grown in files.most_common(3) + self._grown.most_common(3)
                if grown
            ),
            "Free what these keep alive, or let them work in a process of their own.",
        ]
        return "\n".join(lines)


def peak() -> int:
    """The most memory this process has needed so far, in MB; 0 where the system does not tell."""
    try:  # not `getrusage` here: what that tells includes the process this one was started by
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024 if sys.platform == "darwin" else 1024)
