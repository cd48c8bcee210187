"""The command line: a module for each command, its arguments and its reports."""
