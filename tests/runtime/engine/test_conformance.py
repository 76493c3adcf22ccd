"""The embedded engine does what every engine has to do."""

import pytest

from troth.testing.engine_conformance import checks


@pytest.mark.parametrize("check", [pytest.param(check, id=f"{check.part}: {check.name}") for check in checks()])
def test_the_embedded_engine(check, ground):
    """Each check of the suite that other engines have to pass as well."""
    check.run(ground)
