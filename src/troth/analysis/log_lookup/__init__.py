"""From a log back to the code: what it says of lost calls, and where in a project they are made."""
