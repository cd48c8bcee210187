"""The command line on a terminal, recorded."""
