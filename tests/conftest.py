"""Gives Ctrl-C its meaning back.

A suite that is started in the background (`make test &`, some CI runners) inherits that SIGINT is ignored, and so do
all processes that tests start in order to interrupt them.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
