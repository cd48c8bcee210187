"""The nouns: objects, requests, plans, outcomes, errors, options. Frozen values without I/O."""
