"""The values of a package that differ from cloud to cloud: which it has, and how one is set."""
