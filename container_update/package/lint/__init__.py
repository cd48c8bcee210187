"""The rules that a package has to keep, each a function from the opened package to findings."""
