# SPDX-License-Identifier: Apache-2.0
"""The packages of an operation compared with each other and with live objects. Pure."""
