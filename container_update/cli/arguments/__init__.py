# SPDX-License-Identifier: Apache-2.0
"""The arguments of the commands: how they are parsed, and where else their values come from."""
