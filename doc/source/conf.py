# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation."""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("_ext")))

project = "container-update"
author = "The container-update contributors"
extensions = [
    "command_reference",
    "oslo_config.sphinxext",
    "release_notes",
    "sphinx.ext.autodoc",
]
highlight_language = "none"
smartquotes = False  # they make a dash of the two of an option
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_title = project
html_show_sphinx = False
nitpicky = True
# The library's page has the names that are public; their types name others too.
nitpick_ignore_regex = [("py:.*", r"(container_update|collections\.abc)\..*")]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"

# A part of the index may still have no page. Sphinx has no name for this warning.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: "toctree glob pattern" not in str(record.msg)
)
