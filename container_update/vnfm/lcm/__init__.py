"""The lifecycle operations: what each does in the VIM and to the records."""
