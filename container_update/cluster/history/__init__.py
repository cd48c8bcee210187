# SPDX-License-Identifier: Apache-2.0
"""The operations of a VNF instance that have ended: what each was, and what was there before it."""
