"""The arguments of the commands: how they are parsed, and where else their values come from."""
