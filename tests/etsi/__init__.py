# SPDX-License-Identifier: Apache-2.0
"""ETSI's conformance tests of the API, and the states that they presuppose."""
