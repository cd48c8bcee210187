# SPDX-License-Identifier: Apache-2.0
"""The command line: a module for each command, its arguments and its reports."""
