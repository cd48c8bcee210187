"""``python -m container_update``: the command line."""

from container_update.cli.main import main

raise SystemExit(main())
