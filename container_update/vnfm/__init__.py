# SPDX-License-Identifier: Apache-2.0
"""A small VNFM: the parts of SOL003 and SOL005 that an update needs, over REST, with a database.

For those who have no Tacker at hand. Read :mod:`container_update.vnfm.service` first.
"""
