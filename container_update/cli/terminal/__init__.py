# SPDX-License-Identifier: Apache-2.0
"""What the command line writes and asks: results, progress, errors, questions; and signals."""
