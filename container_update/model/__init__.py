# SPDX-License-Identifier: Apache-2.0
"""The nouns: objects, requests, plans, outcomes, errors, options. Frozen values without I/O."""
