"""Configuration of the documentation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("_ext")))

project = "container-update"
author = "The container-update contributors"
extensions = ["command_reference", "oslo_config.sphinxext", "sphinx.ext.autodoc"]
html_theme = "alabaster"
man_pages = [
    (
        "reference/commands",
        "container-update",
        "move a running cloud-native network function to a new package",
        [author],
        1,
    )
]
nitpicky = True
# The library's page has the names that are public; their types name others too.
nitpick_ignore_regex = [("py:.*", r"(container_update|collections\.abc)\..*")]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
