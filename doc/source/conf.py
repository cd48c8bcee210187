"""Configuration of the documentation."""

project = "container-update"
author = "The container-update contributors"
extensions = ["oslo_config.sphinxext", "sphinx.ext.autodoc"]
html_theme = "alabaster"
nitpicky = True
# The library's page has the names that are public; their types name others too.
nitpick_ignore_regex = [("py:.*", r"(container_update|collections\.abc)\..*")]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
