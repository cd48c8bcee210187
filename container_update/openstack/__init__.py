# SPDX-License-Identifier: Apache-2.0
"""VNFs that are virtual machines: Heat stacks moved to a new package.

package (BaseHOT, VNFD) + live stack -> desired templates and parameters -> plan
    -> Heat: create, update, coordinate, delete, undo -> the host's records
"""
