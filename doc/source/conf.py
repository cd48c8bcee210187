"""Configuration of the documentation."""

project = "container-update"
author = "The container-update contributors"
extensions = ["oslo_config.sphinxext"]
html_theme = "alabaster"
nitpicky = True
