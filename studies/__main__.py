"""Make the page of a study, of the same name: ``python -m studies blocks``."""

import sys
from importlib import import_module
from pathlib import Path

for name in sys.argv[1:]:
    Path(__file__).with_name(f"{name}.md").write_text(import_module(f"studies.{name}").page(), "utf-8")
