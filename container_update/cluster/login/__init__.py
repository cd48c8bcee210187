# SPDX-License-Identifier: Apache-2.0
"""The login of a connection to an API server: where it comes from, and when it is got again."""
