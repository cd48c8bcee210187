"""Plans and outcomes, as text and JSON or as an HTML page."""
