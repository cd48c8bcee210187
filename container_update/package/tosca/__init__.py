"""What toscaparser says about a VNFD: it runs in a process with limits."""
