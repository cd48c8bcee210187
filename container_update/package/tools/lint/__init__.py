# SPDX-License-Identifier: Apache-2.0
"""The rules of ``csar check``: each is a function from a package to its findings."""
