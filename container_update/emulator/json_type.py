"""The alias that both emulators use for API objects."""

from typing import Any

Json = dict[str, Any]
"""An object as the API sends it."""
