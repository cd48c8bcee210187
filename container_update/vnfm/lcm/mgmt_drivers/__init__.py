# SPDX-License-Identifier: Apache-2.0
"""The Mgmt Drivers that a VNFD names for the start and the end of an operation.

They are loaded as in Tacker: in the v1 API from the entry points, in the v2 API as scripts of the
package.
"""

from container_update.vnfm.lcm.mgmt_drivers.v1 import V1Drivers
from container_update.vnfm.lcm.mgmt_drivers.v2 import V2Scripts
from container_update.vnfm.lcm.operation_context import OperationContext, known_flavour


def drivers_of(context: OperationContext) -> V1Drivers | V2Scripts:
    """Return the drivers that the instance's package names for its flavour."""
    record = context.record
    with context.open_package(record.vnfd_id) as package:
        flavour_id = record.flavour_id or context.request.get("flavourId")
        scripts = package.interface_scripts(known_flavour(package, flavour_id))
    kind = V1Drivers if context.api == "v1" else V2Scripts
    return kind(context, context.package(record.vnfd_id), scripts)
