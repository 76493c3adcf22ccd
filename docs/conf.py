"""How the documentation is built: `make docs`, with every warning an error."""

import sys
from pathlib import Path

from troth import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from api import write_api_pages
from picture import write_finding
from rules import write_rule_pages

write_rule_pages(Path(__file__).parent / "rules")
write_api_pages(Path(__file__).parent / "api")
write_finding(Path(__file__).parent / "_static" / "finding.svg")

project = "Troth"
author = "The Troth contributors"
copyright = "2026, The Troth contributors"
release = version = __version__

extensions = ["myst_parser", "file_names"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext"]
html_static_path = ["_static"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "Troth"
nitpicky = True
