# SPDX-License-Identifier: Apache-2.0
"""A CSAR as values: archive, metadata, VNFD, manifests, templates; and how to build one."""
