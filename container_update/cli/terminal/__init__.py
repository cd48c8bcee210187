"""What a person at a terminal sees: styles, progress, a question."""
