"""The templates and parameters of a stack as they are to be. Pure."""
