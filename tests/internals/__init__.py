# SPDX-License-Identifier: Apache-2.0
"""What several tests use and the public face does not have: the one place where it is imported.

Only what has no front door belongs here: the rest is in :mod:`container_update`.
``tests/unit`` imports the modules that it tests.
"""
