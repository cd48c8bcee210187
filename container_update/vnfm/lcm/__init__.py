# SPDX-License-Identifier: Apache-2.0
"""The lifecycle operations: what each does in the VIM and to the records."""
