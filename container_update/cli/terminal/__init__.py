"""What the command line writes and asks: results, progress, errors, questions; and signals."""
