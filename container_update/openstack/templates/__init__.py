# SPDX-License-Identifier: Apache-2.0
"""The templates and parameters of a stack as they are to be. Pure."""
