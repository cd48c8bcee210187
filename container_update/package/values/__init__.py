# SPDX-License-Identifier: Apache-2.0
"""The values in a package's files: the line of each, and what differs from cloud to cloud."""
