# SPDX-License-Identifier: Apache-2.0
"""The operations that a user knows: update, change of the package, resume; and their records.

Start with :mod:`container_update.operations.update`; ``change_package`` is ChangeCurrentVNFPackage
(ETSI GS NFV-SOL 003).
"""
