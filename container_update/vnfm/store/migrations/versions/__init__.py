# SPDX-License-Identifier: Apache-2.0
"""One module for each step, from one version of the tables to the next.

A database without tables gets those of :mod:`container_update.vnfm.store.rows` as they are.
"""
