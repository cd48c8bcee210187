# SPDX-License-Identifier: Apache-2.0
"""The controllers of the kinds that run pods."""
