"""Call user code: functions of either color, worker threads, cancellation, and what a call leaves behind."""
