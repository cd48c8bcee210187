# SPDX-License-Identifier: Apache-2.0
"""HTTP apart from the resources: authentication, limits, problem details, health, logs."""
