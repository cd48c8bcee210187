# SPDX-License-Identifier: Apache-2.0
"""What a user can ask for: update, change of the package, install, uninstall, heal, scale, undo.

``change`` is ChangeCurrentVNFPackage (ETSI GS NFV-SOL 003).
"""
