import ssl

import pytest
from tests.server.webhooks.receiver import Receiver

from troth.runtime import Runtime


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def tls_receiver():
    """A receiver behind TLS under the name hooks.example, and the context that trusts it."""
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    made = Receiver(context)
    made.trusting = trusting
    yield made
    made.close()


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "troth.db", in_process=False) as opened:
        yield opened
