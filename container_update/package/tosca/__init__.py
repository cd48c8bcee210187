# SPDX-License-Identifier: Apache-2.0
"""What toscaparser says about a VNFD: it runs in a process with limits."""
