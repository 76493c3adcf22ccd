"""The engine on Temporal does what every engine has to do; its record is in PostgreSQL."""

import pytest

from troth.testing.engine_conformance import checks

pytestmark = [pytest.mark.xdist_group("temporal"), pytest.mark.timeout(400)]

LONG = {
    # hundreds of runs, at 25 ms of CPU a step
    "many_runs_at_once_need_few_threads",
    "a_task_cancelled_anywhere_leaves_no_lease_behind",
}


def _case(check):
    marks = [pytest.mark.soak] if check.name in LONG else []
    return pytest.param(check, id=f"{check.part}: {check.name}", marks=marks)


@pytest.mark.parametrize("check", [_case(check) for check in checks()])
def test_the_engine_on_temporal(check, ground):
    """Each check of the suite that the embedded engine passes as well."""
    check.run(ground)
