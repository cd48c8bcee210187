# SPDX-License-Identifier: Apache-2.0
"""What has to be in order before anything is written: rights, namespaces, what the server takes."""
