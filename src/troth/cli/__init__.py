"""The command line: a frame (`app.py`) and one module per command, imported only when that command is called."""
